import { modelOf } from '../support/host-fixtures.ts'
import { CHURN } from './churn.ts'
import { answersAgain, isSettled, outcomeOf, someQuestion, type Outcome } from './questions.ts'
import { pick, whole } from './randoms.ts'
import type { SimAsker } from './sim-asker.ts'
import { createSimSwarm, type SimSwarm } from './sim-swarm.ts'

export type ScenarioOptions = {
  readonly seed: number
  /** Questions that are asked in all. */
  readonly answers: number
  readonly people: number
  readonly devices: number
  readonly stages: number
  /** Between two things that happen to devices, on average, ms; null = nothing happens. */
  readonly churnMs: number | null
}

export type ScenarioResult = Readonly<Record<Outcome, number>> & {
  readonly answers: number
  /** How the honest ends were explained, with their numbers. */
  readonly endings: Readonly<Record<string, number>>
  readonly leaks: readonly string[]
  readonly objections: readonly string[]
  readonly virtualMs: number
  readonly events: number
  readonly fingerprint: number
}

/** A swarm that lives for a while: people ask one thing after the other while devices come, go and misbehave. */
export async function playScenario(options: ScenarioOptions): Promise<ScenarioResult> {
  const sim = await createSimSwarm({
    seed: options.seed,
    manifest: modelOf({ layers: 6, contextLength: 256 }),
    minStages: options.stages,
    sharesPieces: true,
  })
  const random = sim.randoms.stream('scenario')
  for (let device = 0; device < options.devices; device += 1) joinSome(sim, random)
  const asker = sim.openAsker()
  await sim.untilComplete(60_000)
  const tally = createTally(options.answers)
  const people = Array.from({ length: options.people }, (_, index) =>
    live(sim, index === 0 ? asker : sim.openAsker(), tally, sim.randoms.stream(`person ${index}`)),
  )
  const isOver = (): boolean => tally.left() === 0
  if (options.churnMs !== null) churn(sim, random, options.churnMs, isOver)
  let areHome = false
  void Promise.all(people).then(() => (areHome = true))
  await sim.pass(Infinity, () => areHome)
  const failings = await recover(sim, random)
  const leaks = await sim.close()
  return {
    ...tally.result(),
    leaks,
    objections: [...sim.objections, ...failings],
    virtualMs: sim.clock.now(),
    events: sim.clock.events,
    fingerprint: sim.fingerprint,
  }
}

/** With enough room and nothing that happens any more a swarm is whole and answers, whatever was before. */
async function recover(sim: SimSwarm, random: () => number): Promise<string[]> {
  await sim.calm()
  for (let device = 0; device < 4; device += 1) sim.join({ pledgeBytes: 1e9, stepMs: () => 10 })
  return await answersAgain(sim, random)
}

/** Room for 2 layers, or for more, and one of three speeds. */
function joinSome(sim: SimSwarm, random: () => number): void {
  const ms = pick(random, [4, 10, 30])
  const pledgeBytes = pick(random, [35_000, 60_000, 1e9])
  sim.join({ pledgeBytes, stepMs: (rows) => ms + rows * 0.1 * ms })
}

type Tally = {
  left(): number
  take(): void
  count(outcome: Outcome, ending: string): void
  result(): Pick<ScenarioResult, Outcome | 'answers' | 'endings'>
}

function createTally(answers: number): Tally {
  const outcomes = { identical: 0, honest: 0, wrong: 0, hang: 0 }
  const endings: Record<string, number> = {}
  let left = answers
  return {
    left: () => left,
    take: () => void (left -= 1),
    count(outcome, ending) {
      outcomes[outcome] += 1
      if (outcome !== 'identical') endings[ending] = (endings[ending] ?? 0) + 1
    },
    result: () => ({ answers, ...outcomes, endings }),
  }
}

/** One person: asks, reads, sometimes loses patience, thinks, and asks again. */
async function live(
  sim: SimSwarm,
  asker: SimAsker,
  tally: Tally,
  random: () => number,
): Promise<void> {
  const sleep = (ms: number): Promise<void> => new Promise((done) => void sim.clock.after(ms, done))
  while (tally.left() > 0) {
    await sleep(whole(random, 100, 2_000))
    if (!asker.isConnected || tally.left() === 0) continue
    tally.take()
    const { question, expected } = await someQuestion(sim.unsplit, random, 1)
    const answer = asker.ask(question)
    if (random() < 0.05) void sleep(whole(random, 50, 2_000)).then(answer.cancel)
    while (!isSettled(answer, sim.clock.now())) await sleep(100)
    const { end } = answer
    tally.count(outcomeOf(answer, expected), end?.code ?? end?.reason ?? 'none')
  }
}

function churn(sim: SimSwarm, random: () => number, everyMs: number, isOver: () => boolean): void {
  sim.plan(-Math.log(1 - random()) * everyMs, () => {
    if (isOver()) return
    const total = CHURN.reduce((sum, { weight }) => sum + weight, 0)
    let at = random() * total
    const next = CHURN.find(({ weight }) => (at -= weight) < 0)
    next?.happen(sim, random, () => joinSome(sim, random))
    churn(sim, random, everyMs, isOver)
  })
}
