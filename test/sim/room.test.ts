import { expect, test } from 'vitest'
import { createStageSizes } from '../../sdk/core/plan/memory.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { isSettled, outcomeOf } from './questions.ts'
import type { SimAnswer } from './sim-asker.ts'
import { createSimSwarm, type SimSwarm } from './sim-swarm.ts'

const CONTEXT = 512

/** Two holders of each half, each with room for its weights and two whole contexts, and nothing more. */
async function tightRing(seed: number): Promise<SimSwarm> {
  const manifest = modelOf({ layers: 6, contextLength: CONTEXT })
  const sizes = createStageSizes(manifest)
  const halves = [
    { start: 0, end: 4 },
    { start: 4, end: 8 },
  ]
  const pledgeBytes = Math.max(...halves.map((half) => sizes.bytes('webgpu', half))) + 10
  const sim = await createSimSwarm({ seed, manifest, minStages: 2 })
  for (let device = 0; device < 4; device += 1) sim.join({ pledgeBytes, stepMs: () => 20 })
  return sim
}

/** An answer that may grow to a whole context, and is long enough to be disturbed. */
async function longQuestion(sim: SimSwarm, index: number) {
  const prompt = Array.from({ length: 200 }, (_, at) => 3 + ((at * (index + 7)) % 90))
  for (let seed = index; ; seed += 4) {
    const sampling = { ...GREEDY, temperature: 0.9, seed }
    const question = { prompt, maxTokens: 250, sampling }
    const expected = await sim.unsplit.answer(question)
    if (expected.length > 60) return { question, expected }
  }
}

test('a holder leaves a ring that is full: what has no room waits for it, and no pledge is exceeded', async () => {
  const sim = await tightRing(7)
  const askers = Array.from({ length: 4 }, () => sim.openAsker())
  await sim.untilComplete(60_000)
  const cases: { answer: SimAnswer; expected: readonly number[] }[] = []
  for (const [index, asker] of askers.entries()) {
    const { question, expected } = await longQuestion(sim, index)
    cases.push({ answer: asker.ask(question), expected })
  }
  await sim.pass(60_000, () => cases.every(({ answer }) => answer.tokens.length > 5))
  const victim = sim.host.state().requests.get(cases[0]?.answer.key ?? '')?.stages[1]?.peer
  sim.devices.find(({ peer }) => peer === victim)?.leave()
  await sim.pass(300_000, () => cases.every(({ answer }) => isSettled(answer, sim.clock.now())))
  const outcomes = cases.map(({ answer, expected }) => outcomeOf(answer, expected))
  expect(outcomes).toEqual(cases.map(() => 'identical'))
  expect(await sim.close()).toEqual([])
  expect(sim.objections).toEqual([])
})
