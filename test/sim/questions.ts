import { SESSION_IDLE_MS } from '../../sdk/core/limits.ts'
import { GREEDY, type SamplingParams } from '../../sdk/core/sampling/params.ts'
import { pick, whole } from './randoms.ts'
import type { SimAnswer } from './sim-asker.ts'
import type { Question, Unsplit } from './unsplit.ts'

/** `identical`: the text of the unsplit model. `honest`: the beginning of it, and a reason. */
export type Outcome = 'identical' | 'honest' | 'wrong' | 'hang'

/** A question with the answer that it must get. */
export type Case = { readonly question: Question; readonly expected: readonly number[] }

/** Silence after which an asker is left hanging: longer than its own limit. */
const HANG_MS = SESSION_IDLE_MS + 10_000

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

/** Nothing more comes: it ended, or its asker was left hanging. */
export function isSettled({ end, tokenAt, askedAt }: SimAnswer, now: number): boolean {
  return end !== null || now - (tokenAt.at(-1) ?? askedAt) > HANG_MS
}

/** What became of an answer that is settled. */
export function outcomeOf({ end, tokens }: SimAnswer, expected: readonly number[]): Outcome {
  if (tokens.some((token, index) => token !== expected[index])) return 'wrong'
  if (end === null) return 'hang'
  if (end.reason === 'cancelled') return 'honest'
  if (end.reason === 'error') return end.code === 'internal' ? 'wrong' : 'honest'
  return tokens.length === expected.length ? 'identical' : 'wrong'
}
