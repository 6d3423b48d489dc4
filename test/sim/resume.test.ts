import { expect, test } from 'vitest'
import { modelOf } from '../support/host-fixtures.ts'
import { isSettled, outcomeOf, someQuestion, type Case } from './questions.ts'
import { createRandoms, pick, whole } from './randoms.ts'
import type { SimAnswer, SimAsker } from './sim-asker.ts'
import { createSimSwarm, type SimSwarm } from './sim-swarm.ts'

const RUNS = 15
const COMPLETE_MS = 60_000
const STAGES = 3

/** What can come between an asker and its answer. */
const BREAKS: Readonly<Record<string, (sim: SimSwarm, asker: SimAsker) => void>> = {
  line: (_, asker) => asker.signaling.drop('the line broke'),
  /** The host still believes in the old socket when the new one comes. */
  unnoticed: (_, asker) => asker.signaling.drop('the line broke', 5_000),
  host: (sim) => sim.host.restart(),
}

/** One or two answers on a whole ring, interrupted up to three times. All of it follows from the seed. */
async function run(seed: number) {
  const random = createRandoms(seed).stream('scene')
  const sim = await createSimSwarm({
    seed,
    manifest: modelOf({ layers: 6, contextLength: 256 }),
    minStages: STAGES,
  })
  for (let device = 0; device < STAGES; device += 1)
    sim.join({ pledgeBytes: 1e9, stepMs: (rows) => 8 + rows })
  const askers = Array.from({ length: whole(random, 1, 2) }, () => sim.openAsker())
  await sim.untilComplete(COMPLETE_MS)
  let resumed = 0
  sim.onEvent((event) => {
    if (event.kind === 'asked' && event.answered !== undefined) resumed += 1
  })
  const asked: (Pick<Case, 'expected'> & { readonly answer: SimAnswer })[] = []
  for (const asker of askers) {
    const { question, expected } = await someQuestion(sim.unsplit, random, 6)
    asked.push({ expected, answer: asker.ask(question) })
  }
  const settled = (): boolean => asked.every(({ answer }) => isSettled(answer, sim.clock.now()))
  const breaks: string[] = []
  for (let times = whole(random, 1, 3); times > 0; times -= 1) {
    await sim.pass(whole(random, 0, 900), settled)
    const kind = pick(random, Object.keys(BREAKS))
    breaks.push(kind)
    BREAKS[kind]?.(sim, pick(random, askers))
  }
  await sim.pass(Infinity, settled)
  const outcomes = asked.map(({ answer, expected }) => outcomeOf(answer, expected))
  const endings = asked.map(({ answer }) => answer.end?.message ?? 'no end')
  const leaks = await sim.close()
  return { seed, breaks, outcomes, endings, resumed, leaks, objections: sim.objections }
}

test('RS1 RS2 RS3 RS4 RS5 whatever comes between askers and host, a ring that is whole gives each the text of the unsplit model', async () => {
  let resumed = 0
  for (let seed = 1; seed <= RUNS; seed += 1) {
    const result = await run(seed)
    resumed += result.resumed
    const isGood =
      result.outcomes.every((outcome) => outcome === 'identical') &&
      result.leaks.length + result.objections.length === 0
    expect(isGood, JSON.stringify(result)).toBe(true)
  }
  expect(resumed).toBeGreaterThan(RUNS)
}, 60_000)
