import { expect, test } from 'vitest'
import { createLetterTokenizer } from '../../test/support/letter-tokenizer.ts'
import { refuseTooLong } from './refuse-too-long.ts'

/** One token for each letter, and how many letters were encoded at once. */
function watched() {
  const sizes: number[] = []
  const { encode } = createLetterTokenizer()
  return { sizes, encode: (text: string) => (sizes.push(text.length), encode(text)) }
}

test('a text that is far too long is refused after one piece of it, with both numbers', async () => {
  const tokenizer = watched()
  const asked = refuseTooLong(tokenizer, ['x'.repeat(4_000_000)], 512)
  await expect(asked).rejects.toMatchObject({
    code: 'prompt-too-long',
    message: expect.stringMatching(/at least \d{5} tokens.* 512/) as string,
  })
  expect(tokenizer.sizes).toEqual([32_768])
})

test('many texts count together, and others run between the pieces', async () => {
  const tokenizer = watched()
  let turns = 0
  let counts = true
  const turn = (): void => {
    turns += 1
    if (counts) setImmediate(turn)
  }
  turn()
  const texts = Array.from({ length: 10 }, () => 'x'.repeat(20_000))
  await expect(refuseTooLong(tokenizer, texts, 100_000)).rejects.toMatchObject({
    code: 'prompt-too-long',
  })
  counts = false
  expect(tokenizer.sizes.length).toBeLessThan(10)
  expect(turns).toBeGreaterThanOrEqual(tokenizer.sizes.length)
})

test('what may fit passes, and short texts are not looked at', async () => {
  const tokenizer = watched()
  await refuseTooLong(tokenizer, ['x'.repeat(32_768)], 512)
  expect(tokenizer.sizes).toEqual([])
  await refuseTooLong(tokenizer, ['x'.repeat(60_000)], 60_000)
  expect(tokenizer.sizes).toEqual([32_768, 27_232])
})
