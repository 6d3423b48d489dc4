import { REPAIR_MS, SESSION_STALL_MS } from '../../sdk/core/limits.ts'
import { GREEDY, type SamplingParams } from '../../sdk/core/sampling/params.ts'
import { pick, whole } from './randoms.ts'
import type { SimAnswer } from './sim-asker.ts'
import type { SimSwarm } from './sim-swarm.ts'
import type { Question, Unsplit } from './unsplit.ts'

/** `identical`: the text of the unsplit model. `honest`: the beginning of it, and a reason. */
export type Outcome = 'identical' | 'honest' | 'wrong' | 'hang'

/** A question with the answer that it must get. */
export type Case = { readonly question: Question; readonly expected: readonly number[] }

/**
 * Silence after which an asker is left hanging: a loss is noticed in seconds, or where frames are kept back in
 * SESSION_STALL_MS, by each route anew, and a route is had in time or not at all.
 */
const HANG_MS = REPAIR_MS + 2 * SESSION_STALL_MS

/** A question of any length, sampled in any way, whose answer has at least so many tokens. */
export async function someQuestion(
  unsplit: Unsplit,
  random: () => number,
  leastTokens: number,
): Promise<Case> {
  for (;;) {
    const prompt = Array.from({ length: whole(random, 1, 80) }, () => whole(random, 3, 99))
    const question = { prompt, maxTokens: whole(random, 16, 48), sampling: someSampling(random) }
    const expected = await unsplit.answer(question)
    if (expected.length >= leastTokens) return { question, expected }
  }
}

function someSampling(random: () => number): SamplingParams {
  const seed = whole(random, 0, 1_000_000)
  return pick(random, [
    GREEDY,
    { ...GREEDY, temperature: 0.9, topP: 0.95, seed },
    { ...GREEDY, temperature: 0.7, repetitionPenalty: 1.2, frequencyPenalty: 0.3, seed },
  ])
}

/** Nothing more comes: it ended, or its asker is gone or was left hanging. */
export function isSettled({ end, isUnread, tokenAt, askedAt }: SimAnswer, now: number): boolean {
  return end !== null || isUnread || now - (tokenAt.at(-1) ?? askedAt) > HANG_MS
}

/** What became of an answer that is settled. */
export function outcomeOf(
  { end, isUnread, tokens }: SimAnswer,
  expected: readonly number[],
): Outcome {
  if (tokens.some((token, index) => token !== expected[index])) return 'wrong'
  if (end === null) return isUnread ? 'honest' : 'hang'
  if (end.reason === 'cancelled') return 'honest'
  if (end.reason === 'error') return end.code === 'internal' ? 'wrong' : 'honest'
  return tokens.length === expected.length ? 'identical' : 'wrong'
}

/** Before a swarm that could answer is said not to, a person asks so many times. */
const PATIENCE = 3
const WHOLE_MS = 60_000

/** Whether the ring is whole once more and answers; otherwise why not. */
export async function answersAgain(sim: SimSwarm, random: () => number): Promise<string[]> {
  const asker = sim.openAsker()
  const whys: string[] = []
  for (let attempt = 0; attempt < PATIENCE; attempt += 1) {
    if (!(await sim.untilComplete(WHOLE_MS))) return [`not whole again within ${WHOLE_MS} ms`]
    const { question, expected } = await someQuestion(sim.unsplit, random, 1)
    const answer = asker.ask(question)
    await sim.pass(Infinity, () => isSettled(answer, sim.clock.now()))
    const outcome = outcomeOf(answer, expected)
    if (outcome === 'identical') return []
    whys.push(`asked again: ${outcome}: ${answer.end?.message ?? ''}`)
  }
  return whys
}
