import type { Decoder } from '../support/chained-blocks.ts'

/** What a decoder makes of a text, each token after the text's own. */
export type TextMeasure = {
  readonly likeliestIds: readonly number[]
  /** −ln p of each token but the first. */
  readonly losses: readonly number[]
}

/** `chunk`: tokens that go in at once. */
export async function followText(
  decoder: Decoder,
  ids: readonly number[],
  { vocabSize, chunk }: { readonly vocabSize: number; readonly chunk: number },
): Promise<TextMeasure> {
  const likeliestIds: number[] = []
  const losses: number[] = []
  const last = ids.length - 1
  for (let at = 0; at < last; at += chunk) {
    const run = ids.slice(at, Math.min(at + chunk, last))
    const logits = await decoder.step(at, run)
    run.forEach((_, i) => {
      const row = logits.subarray(i * vocabSize, (i + 1) * vocabSize)
      const best = likeliest(row)
      likeliestIds.push(best)
      losses.push(lossOf(row, row[best] ?? NaN, ids[at + i + 1] ?? -1))
    })
  }
  return { likeliestIds, losses }
}

export function perplexityOf({ losses }: TextMeasure): number {
  return Math.exp(losses.reduce((sum, loss) => sum + loss, 0) / losses.length)
}

/**
 * Greedy ids behind a prompt. What is expected goes in as one run; only where the decoder chooses otherwise
 * it goes on token by token.
 */
export async function greedyIds(
  decoder: Decoder,
  prompt: readonly number[],
  expected: readonly number[],
  vocabSize: number,
): Promise<number[]> {
  const first = await decoder.step(0, [...prompt, ...expected.slice(0, -1)])
  const chosen = expected.map((_, i) => {
    const row = prompt.length - 1 + i
    return likeliest(first.subarray(row * vocabSize, (row + 1) * vocabSize))
  })
  const split = chosen.findIndex((id, i) => id !== expected[i])
  if (split < 0) return chosen
  const ids = chosen.slice(0, split + 1)
  // A whole graph can't go back to a position: it starts anew.
  let position = 0
  while (ids.length < expected.length) {
    const run = position === 0 ? [...prompt, ...ids] : ids.slice(-1)
    const logits = await decoder.step(position, run)
    position += run.length
    ids.push(likeliest(logits.subarray(-vocabSize)))
  }
  return ids
}

function likeliest(row: Float32Array): number {
  let best = 0
  for (let id = 1; id < row.length; id++) if ((row[id] ?? 0) > (row[best] ?? 0)) best = id
  return best
}

function lossOf(row: Float32Array, top: number, target: number): number {
  let sum = 0
  for (const logit of row) sum += Math.exp(logit - top)
  return top + Math.log(sum) - (row[target] ?? NaN)
}
