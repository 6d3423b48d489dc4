import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { DISTURBANCES, disturb, type Disturbance, type Struck } from './disturbances.ts'
import { answersAgain, isSettled, outcomeOf, someQuestion, type Outcome } from './questions.ts'
import { createRandoms, pick, whole } from './randoms.ts'
import { watchReactions } from './reaction.ts'
import type { SimAnswer, SimAsker } from './sim-asker.ts'
import { createSimSwarm, type SimSwarm } from './sim-swarm.ts'

export type ChaosRun = {
  readonly seed: number
  readonly kind: Disturbance
  readonly stages: number
  readonly hasReplica: boolean
  readonly outcome: Outcome
  /** What the asker was told where the answer broke off. */
  readonly ending: string
  /** From the disturbance to the host's reaction, ms; null where it broke nothing. */
  readonly noticedMs: number | null
  /** From such a disturbance to the next token; null where none came. */
  readonly nextTokenMs: number | null
  readonly leaks: readonly string[]
  /** Rules that were broken, and what was wrong with the swarm afterwards. */
  readonly objections: readonly string[]
  readonly fingerprint: number
}

const COMPLETE_MS = 60_000
/** An answer that is too short can't be disturbed in its middle. */
const ANSWER_LEAST = 6

/** One ring, one to four answers, one disturbance while they are computed. All of it follows from the seed. */
export async function chaosRun(
  seed: number,
  kinds: readonly Disturbance[] = DISTURBANCES,
): Promise<ChaosRun> {
  const random = createRandoms(seed).stream('scene')
  const kind = pick(random, kinds)
  const sim = await openRing(seed, kind, random)
  // Where it happens to one who asks there is another one.
  const people = Math.max(whole(random, 1, 4), kind.startsWith('asker') ? 2 : 1)
  const askers = Array.from({ length: people }, () => sim.openAsker())
  await sim.untilComplete(COMPLETE_MS)
  const watch = watchReactions(sim)
  const cases = await askAll(sim, askers, random)
  const struck = await strike(sim, cases, kind, random)
  watch.arm(cases[0]?.answer.key ?? '')
  await sim.pass(Infinity, () => cases.every(({ answer }) => isSettled(answer, sim.clock.now())))
  const outcomes = cases.map(({ answer, expected }) => outcomeOf(answer, expected))
  const noticed = watch.reaction()
  const nextAt = cases[0]?.answer.tokenAt[noticed?.tokens ?? Infinity]
  const failings = suffered(cases, struck)
  if (struck.mustRecover) failings.push(...(await answersAgain(sim, random)))
  await sim.calm()
  failings.push(...struck.objections())
  const leaks = await sim.close()
  return {
    seed,
    kind,
    stages: stagesOf(seed),
    hasReplica: struck.hasReplica,
    outcome: worst(outcomes),
    ending: cases.map(({ answer }) => answer.end?.message ?? 'no end').find((text) => text) ?? '',
    noticedMs: noticed === null ? null : noticed.at - struck.at,
    nextTokenMs: nextAt === undefined ? null : nextAt - struck.at,
    leaks,
    objections: [...sim.objections, ...failings],
    fingerprint: sim.fingerprint,
  }
}

function stagesOf(seed: number): number {
  return whole(createRandoms(seed).stream('stages'), 2, 4)
}

/** Pieces of three parts where they are what is disturbed; otherwise small ones, which cost no time. */
const LAYER_BYTES = { large: 150_000, small: 10_000 }

async function openRing(seed: number, kind: Disturbance, random: () => number): Promise<SimSwarm> {
  const stages = stagesOf(seed)
  const sharesPieces = kind.startsWith('source')
  const layerBytes = sharesPieces ? LAYER_BYTES.large : LAYER_BYTES.small
  const latencyMs = pick(random, [1, 4, 20, 60])
  const sim = await createSimSwarm({
    seed,
    manifest: modelOf({ layers: 6, contextLength: 256, layerBytes }),
    minStages: stages,
    sharesPieces,
    weather: { latencyMs, jitterMs: latencyMs },
    hostMs: { latency: latencyMs, jitter: latencyMs },
  })
  const copies = pick(random, [1, 2, 2, 3])
  for (let device = 0; device < stages * copies; device += 1) {
    const ms = whole(random, 4, 40)
    sim.join({ pledgeBytes: 1e9, stepMs: (rows) => ms + rows * 0.1 * ms })
  }
  return sim
}

type Asked = { readonly answer: SimAnswer; readonly expected: readonly number[] }

async function askAll(
  sim: SimSwarm,
  askers: readonly SimAsker[],
  random: () => number,
): Promise<Asked[]> {
  const cases: Asked[] = []
  for (const asker of askers) {
    const { question, expected } = await someQuestion(sim.unsplit, random, ANSWER_LEAST)
    cases.push({ answer: asker.ask(question), expected })
    await sim.pass(whole(random, 0, 100))
  }
  return cases
}

/** At a token of the first answer, before the first too: then the prompt is on its way. */
async function strike(
  sim: SimSwarm,
  cases: readonly Asked[],
  kind: Disturbance,
  random: () => number,
): Promise<Struck> {
  const [target] = cases
  if (target === undefined) throw new Error('nobody asks')
  const { answer, expected } = target
  const at = whole(random, 0, expected.length - 3)
  const request = (): RequestState | undefined => sim.host.state().requests.get(answer.key)
  const isThere = (): boolean => request()?.phase === 'running' && answer.tokens.length >= at
  await sim.pass(COMPLETE_MS, isThere)
  await sim.pass(random() * 60)
  const now = request()
  const struck = now === undefined ? null : await disturb(sim, now, kind, random)
  if (struck === null) throw new Error(`the answer was not running: ${answer.end?.message ?? ''}`)
  return struck
}

/** Answers that should not have been touched; the first one is that of whoever was struck. */
function suffered(cases: readonly Asked[], { kind, unharmed }: Struck): string[] {
  if (unharmed === 'nobody') return []
  return cases.slice(unharmed === 'everybody' ? 0 : 1).flatMap(({ answer, expected }) => {
    const outcome = outcomeOf(answer, expected)
    const why = answer.end?.message ?? ''
    return outcome === 'identical'
      ? []
      : [`${kind}: the answer of ${answer.key} is ${outcome}: ${why}`]
  })
}

const BADNESS: readonly Outcome[] = ['identical', 'honest', 'hang', 'wrong']

function worst(outcomes: readonly Outcome[]): Outcome {
  return outcomes.toSorted((a, b) => BADNESS.indexOf(b) - BADNESS.indexOf(a))[0] ?? 'identical'
}
