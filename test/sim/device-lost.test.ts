import { expect, test } from 'vitest'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { isSettled, outcomeOf } from './questions.ts'
import { createSimSwarm } from './sim-swarm.ts'

test('RE2 caches that were kept on a device that was lost are not claimed, and one loss is one strike at most', async () => {
  const manifest = modelOf({ layers: 6, contextLength: 256 })
  const sim = await createSimSwarm({ seed: 5, manifest, minStages: 3 })
  for (let device = 0; device < 3; device += 1)
    sim.join({ pledgeBytes: 1e9, stepMs: (rows) => 20 + rows })
  const asker = sim.openAsker()
  await sim.untilComplete(60_000)
  const [, device] = sim.devices
  if (device === undefined) throw new Error('no device')
  const claims: number[] = []
  const opened: number[] = []
  sim.onEvent((event) => {
    if (event.kind === 'session-opened') opened.push(event.valid)
    if (event.kind === 'stage-ready' && event.peer === device.peer) claims.push(event.cached)
  })
  const answer = async (prompt: number[]): Promise<void> => {
    const question = { prompt, maxTokens: 8, sampling: GREEDY }
    const asked = asker.ask(question)
    await sim.pass(60_000, () => isSettled(asked, sim.clock.now()))
    expect(outcomeOf(asked, await sim.unsplit.answer(question))).toBe('identical')
  }
  const beginning = Array.from({ length: 40 }, (_, at) => 3 + at)
  await answer(beginning)
  device.life.runner.lose(true)
  await answer([...beginning, 9, 9, 9])
  // The host goes by what was kept; the device has nothing of it any more.
  expect(opened.slice(0, 2)).toEqual([0, 40])
  expect(claims.slice(0, 2)).toEqual([0, 0])
  expect(sim.host.state().peers.get(device.peer)?.strikes).toBeLessThanOrEqual(1)
  expect(await sim.close()).toEqual([])
  expect(sim.objections).toEqual([])
})
