import { expect, test } from 'vitest'
import { HANDOVER_HIDDEN_MS } from '../../sdk/core/limits.ts'
import { canDoWithout } from '../support/can-do-without.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { isSettled, outcomeOf, someQuestion } from './questions.ts'
import { pick } from './randoms.ts'
import type { SimDevice } from './sim-device.ts'
import { createSimSwarm, type SimSwarm } from './sim-swarm.ts'

/** Until a device that drains is out of every answer: links are made, and the next token is computed. */
const FREE_MS = 1_000

type Scene = {
  readonly sim: SimSwarm
  /** Any stage of the present route that another device holds too. */
  someStage(): SimDevice
}

/** A ring with replicas, and an answer in whose middle something happens, every ten tokens. */
async function answered(
  seed: number,
  rowMs: number,
  happens: (scene: Scene) => Promise<void>,
): Promise<Readonly<Record<string, unknown>>> {
  const minStages = 2 + (seed % 3)
  const manifest = modelOf({ layers: 6, contextLength: 256 })
  const sim = await createSimSwarm({ seed, manifest, minStages })
  const random = sim.randoms.stream('handover')
  for (let device = 0; device < 2 * minStages; device += 1)
    sim.join({ pledgeBytes: 1e9, stepMs: (rows) => rowMs + rows })
  const asker = sim.openAsker()
  await sim.untilComplete(60_000)
  const { question, expected } = await someQuestion(sim.unsplit, random, 40)
  const answer = asker.ask(question)
  const request = () => sim.host.state().requests.get(answer.key)
  function someStage(): SimDevice {
    const stages = request()?.stages ?? []
    const { peer } = pick(
      random,
      stages.filter((stage) => canDoWithout(sim.host.state(), stage.peer)),
    )
    const device = sim.devices.find((one) => one.peer === peer)
    if (!device) throw new Error(`no ${peer}`)
    return device
  }
  for (let at = 2; at < expected.length - 10; at += 10) {
    await sim.pass(60_000, () => answer.tokens.length >= at || answer.end !== null)
    await sim.pass(random() * 100)
    await happens({ sim, someStage })
  }
  await sim.pass(60_000, () => isSettled(answer, sim.clock.now()))
  const { moved, repairs } = request() ?? {}
  const peers = [...sim.host.state().peers.values()]
  return {
    outcome: outcomeOf(answer, expected),
    isMoved: moved !== null,
    repairs,
    blamed: peers.filter(({ strikes, doubts }) => strikes + doubts > 0),
    leaks: await sim.close(),
    objections: sim.objections,
  }
}

const UNDISTURBED = {
  outcome: 'identical',
  isMoved: true,
  repairs: 0,
  blamed: [],
  leaks: [],
  objections: [],
}

test('RE11 RE12 the text is the same however often a device of its route is paused, sampled too, and each is free within a second', async () => {
  for (let seed = 1; seed <= 12; seed += 1) {
    const result = await answered(seed, 20, async ({ sim, someStage }) => {
      const { worker } = someStage().life
      const since = sim.clock.now()
      await worker.pause()
      await sim.pass(60_000, () => worker.snapshot().sessions === 0)
      expect(sim.clock.now() - since, `seed ${seed}`).toBeLessThan(FREE_MS)
      await worker.resume()
    })
    expect(result, `seed ${seed}`).toEqual(UNDISTURBED)
  }
})

test('RE11 an answer leaves a page that stays out of sight, and its text is the same', async () => {
  for (let seed = 1; seed <= 6; seed += 1) {
    let isHidden = false
    const result = await answered(seed, 200, async ({ sim, someStage }) => {
      if (isHidden) return
      isHidden = true
      const { worker } = someStage().life
      worker.setHidden(true)
      await sim.pass(HANDOVER_HIDDEN_MS - 500)
      expect(worker.snapshot().sessions, `seed ${seed}`).toBe(1)
      await sim.pass(60_000, () => worker.snapshot().sessions === 0)
      worker.setHidden(false)
    })
    expect(result, `seed ${seed}`).toEqual(UNDISTURBED)
  }
})
