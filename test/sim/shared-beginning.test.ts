import { expect, test } from 'vitest'
import { modelOf } from '../support/host-fixtures.ts'
import { canDoWithout } from '../support/can-do-without.ts'
import { isSettled, outcomeOf, someQuestion } from './questions.ts'
import { createRandoms, pick, whole } from './randoms.ts'
import type { SimDevice } from './sim-device.ts'
import { createSimSwarm } from './sim-swarm.ts'

const RUNS = 8
const STAGES = 2
const QUESTIONS = 3
/** What they all begin with: as long as a system prompt that kept caches are worth. */
const SHARED_TOKENS = 20

/**
 * Questions with the same beginning, one after the other, so that each goes on with the session of the one before; in
 * each answer devices that others can do without lose their host for a moment, or are closed and opened again.
 */
async function run(seed: number) {
  const random = createRandoms(seed).stream('scene')
  const manifest = modelOf({ layers: 6, contextLength: 256 })
  const sim = await createSimSwarm({ seed, manifest, minStages: STAGES })
  for (let device = 0; device < 2 * STAGES; device += 1)
    sim.join({ pledgeBytes: 1e9, stepMs: (rows) => 20 + rows })
  const asker = sim.openAsker()
  await sim.untilComplete(60_000)
  let adopted = 0
  sim.onEvent((event) => {
    if (event.kind === 'session-opened' && event.valid === SHARED_TOKENS) adopted += 1
  })
  const beginning = Array.from({ length: SHARED_TOKENS }, () => whole(random, 3, 99))
  const outcomes: string[] = []
  for (let question = 0; question < QUESTIONS; question += 1) {
    const { question: some } = await someQuestion(sim.unsplit, random, 1)
    const prompt = [...beginning, 3 + question, ...some.prompt]
    const asked = { ...some, prompt, maxTokens: 60 }
    const expected = await sim.unsplit.answer(asked)
    const answer = asker.ask(asked)
    const settled = (): boolean => isSettled(answer, sim.clock.now())
    while (!settled()) {
      await sim.pass(whole(random, 200, 1_500), settled)
      const stages = sim.host.state().requests.get(answer.key)?.stages ?? []
      const device = sim.devices.find(({ peer }) => peer === pickPeer(stages, random))
      if (!settled() && device && canDoWithout(sim.host.state(), device.peer))
        STROKES[whole(random, 0, STROKES.length - 1)]?.(device)
    }
    outcomes.push(outcomeOf(answer, expected))
    await sim.untilComplete(60_000)
  }
  const leaks = await sim.close()
  return { seed, outcomes, adopted, leaks, objections: sim.objections }
}

const STROKES: readonly ((device: SimDevice) => void)[] = [
  (device) => device.dropSocket(),
  (device) => device.dropSocket(),
  (device) => {
    device.kill()
    device.reopen()
  },
]

function pickPeer(stages: readonly { readonly peer: string }[], random: () => number): string {
  return stages.length === 0 ? '' : pick(random, stages).peer
}

test('RE8 RE9 whoever comes back with rows of the question before, each answer is that of the unsplit model', async () => {
  let adopted = 0
  for (let seed = 1; seed <= RUNS; seed += 1) {
    const result = await run(seed)
    adopted += result.adopted
    const isGood =
      result.outcomes.every((outcome) => outcome === 'identical') &&
      result.leaks.length + result.objections.length === 0
    expect(isGood, JSON.stringify(result)).toBe(true)
  }
  expect(adopted).toBeGreaterThan(RUNS)
}, 60_000)
