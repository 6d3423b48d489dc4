import { expect, it } from 'vitest'
import type { Decoder } from '../support/chained-blocks.ts'
import { followText, greedyIds, perplexityOf } from './measure.ts'

const VOCAB = 10

/** Chooses the sum of all tokens so far, modulo the vocabulary; refuses a position that it isn't at. */
function createSummer(): Decoder & { readonly runs: number[] } {
  let text: number[] = []
  const runs: number[] = []
  return {
    runs,
    step: (position, ids) => {
      if (position !== 0 && position !== text.length) throw new Error(`not at ${position}`)
      text = [...text.slice(0, position), ...ids]
      runs.push(ids.length)
      const logits = new Float32Array(ids.length * VOCAB)
      ids.forEach((_, i) => {
        const sum = text.slice(0, position + i + 1).reduce((a, b) => a + b, 0)
        logits[i * VOCAB + (sum % VOCAB)] = Math.log(11)
      })
      return Promise.resolve(logits)
    },
    close: () => Promise.resolve(),
  }
}

it.each([
  ['right', [6, 2, 4, 8], [6]],
  ['wrong at once', [0, 0, 0, 0], [6, 4, 1, 1]],
  ['wrong at the end', [6, 2, 4, 9], [6]],
  ['wrong in the middle', [6, 2, 5, 8], [6, 6]],
])('greedy ids do not depend on what is expected: %s', async (_name, expected, runs) => {
  const decoder = createSummer()
  expect(await greedyIds(decoder, [1, 2, 3], expected, VOCAB)).toEqual([6, 2, 4, 8])
  expect(decoder.runs).toEqual(runs)
})

it('follows a text in chunks, each token after the text’s own', async () => {
  // Of the three that follow only the first is the likeliest: p = 11/20; the others have 1/20.
  const text = [3, 3, 9, 1]
  for (const chunk of [1, 2, 32]) {
    const found = await followText(createSummer(), text, { vocabSize: VOCAB, chunk })
    expect(found.likeliestIds).toEqual([3, 6, 5])
    expect(perplexityOf(found)).toBeCloseTo(((20 / 11) * 20 * 20) ** (1 / 3), 4)
  }
})
