import { needsHistory, type SamplingParams } from './params.ts'

/**
 * Changes `scores` in place: logit bias, then the repetition penalty (once for each distinct token of
 * prompt and answer), then presence and frequency penalties (answer only). `counts` is scratch of
 * vocabulary size, all zero before and after. Ids outside the vocabulary are ignored.
 */
export function applyPenalties(input: {
  readonly scores: Float32Array
  readonly counts: Int32Array
  readonly params: SamplingParams
  readonly history: Int32Array
  readonly promptLength: number
}): void {
  const { scores, counts, params, history, promptLength } = input
  for (const [token, bias] of params.logitBias) {
    if (token >= 0 && token < scores.length) scores[token] = (scores[token] ?? 0) + bias
  }
  if (!needsHistory(params)) return
  repetition(scores, counts, history, params.repetitionPenalty)
  countedPenalties(scores, counts, history.subarray(promptLength), params)
}

function repetition(
  scores: Float32Array,
  seen: Int32Array,
  history: Int32Array,
  penalty: number,
): void {
  if (penalty === 1) return
  for (const token of history) {
    const score = scores[token]
    if (score === undefined || seen[token] !== 0) continue
    seen[token] = 1
    scores[token] = score > 0 ? score / penalty : score * penalty
  }
  for (const token of history) seen[token] = 0
}

function countedPenalties(
  scores: Float32Array,
  counts: Int32Array,
  answer: Int32Array,
  params: SamplingParams,
): void {
  if (params.presencePenalty === 0 && params.frequencyPenalty === 0) return
  for (const token of answer) counts[token] = (counts[token] ?? 0) + 1
  for (const token of answer) {
    const count = counts[token]
    const score = scores[token]
    if (count === undefined || count === 0 || score === undefined) continue
    scores[token] = score - params.presencePenalty - count * params.frequencyPenalty
    counts[token] = 0
  }
}
