import { expect, test } from 'vitest'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { watchBlame } from './blame.ts'
import { createLie, type LieKind } from './lies.ts'
import { isSettled, outcomeOf } from './questions.ts'
import type { SimDevice } from './sim-device.ts'
import { createSimSwarm, type SimSwarm } from './sim-swarm.ts'

/** Three stages, each with a replica. */
async function openRing(): Promise<SimSwarm> {
  const manifest = modelOf({ layers: 6, contextLength: 256 })
  const sim = await createSimSwarm({ seed: 5, manifest, minStages: 3 })
  for (let device = 0; device < 6; device += 1)
    sim.join({ pledgeBytes: 1e9, stepMs: (rows) => 5 + rows })
  return sim
}

function stageOf(sim: SimSwarm, key: string, stage: number): SimDevice {
  const peer = sim.host.state().requests.get(key)?.stages[stage]?.peer
  const device = sim.devices.find((one) => one.peer === peer)
  if (device === undefined) throw new Error(`nobody holds stage ${stage}`)
  return device
}

/** A prompt of several chunks, whose answer has some tokens. */
async function someCase(sim: SimSwarm) {
  for (let seed = 1; ; seed += 1) {
    const prompt = Array.from({ length: 70 }, (_, index) => 3 + ((index * seed) % 90))
    const sampling = { ...GREEDY, temperature: 0.9, seed }
    const question = { prompt, maxTokens: 12, sampling }
    const expected = await sim.unsplit.answer(question)
    if (expected.length >= 8) return { question, expected }
  }
}

const KINDS: readonly LieKind[] = ['lie-sample', 'lie-no-sample', 'lie-back']

test.each(KINDS.flatMap((kind) => [0, 1].map((stage) => [kind, stage] as const)))(
  'SE5 SE12 %s by stage %i: the same text by another route, and nobody honest is to blame',
  async (kind, stage) => {
    const sim = await openRing()
    const asker = sim.openAsker()
    await sim.untilComplete(60_000)
    const { question, expected } = await someCase(sim)
    const answer = asker.ask(question)
    const phase = () => sim.host.state().requests.get(answer.key)?.phase
    await sim.pass(10_000, () => phase() === 'running')
    const liar = stageOf(sim, answer.key, stage)
    const blame = watchBlame(sim, liar.peer)
    let told = 0
    liar.lie(createLie(kind, () => void (told += 1)))
    await sim.pass(Infinity, () => isSettled(answer, sim.clock.now()))
    expect(outcomeOf(answer, expected)).toBe('identical')
    expect(told).toBeGreaterThan(0)
    expect(blame.isHeld()).toBe(true)
    expect([...sim.host.state().peers.values()].filter((peer) => peer.strikes > 0)).toEqual([])
    await sim.close()
  },
)
