import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTextStream } from '../../sdk/core/text/text-stream.ts'
import { createLogprobTrail, type TokenLogprob } from './logprobs.ts'

const END = 0
const decode = (ids: readonly number[]): string =>
  ids.map((id) => (id === END ? '' : String.fromCodePoint(id))).join('')
const idsOf = (text: string): number[] => Array.from(text, (letter) => letter.codePointAt(0) ?? 0)

function trailOf(words: readonly string[], stops: readonly string[]) {
  // Each word is a token; its id is its place.
  const text = createTextStream({
    decode: (ids) => ids.map((id) => words[id] ?? '').join(''),
    stops: [...stops],
  })
  const trail = createLogprobTrail({ decode: () => '', endIds: new Set([-1]) })
  const entries: TokenLogprob[] = []
  let shown = ''
  for (const [token] of words.entries()) {
    const piece = text.push(token)
    trail.add({ token, logprob: -1 - token, text: piece.raw, top: [] })
    shown += piece.text
    entries.push(...trail.release(piece.text))
    if (piece.stopped) return { entries: [...entries, ...trail.end()], shown }
  }
  const rest = text.end().text
  return { entries: [...entries, ...trail.release(rest), ...trail.end()], shown: shown + rest }
}

test('entries wait for their text, and what a stop string takes has none', () => {
  const { entries, shown } = trailOf(['one ', 'two', ' ST', 'OP', ' three'], ['STOP'])
  expect(shown).toBe('one two ')
  expect(entries.map(({ text }) => text)).toEqual(['one ', 'two', ' '])
  expect(entries.map(({ logprob }) => logprob)).toEqual([-1, -2, -3])
})

test('tokens join up to the answer, wherever it is cut', () => {
  const word = fc.stringMatching(/^[abS]{0,4}$/)
  fc.assert(
    fc.property(
      fc.array(word, { maxLength: 12 }),
      fc.array(word, { maxLength: 3 }),
      (words, stops) => {
        const { entries, shown } = trailOf(words, stops)
        expect(entries.map(({ text }) => text).join('')).toBe(shown)
        for (const stop of stops) if (stop !== '') expect(shown).not.toContain(stop)
      },
    ),
    { numRuns: 500 },
  )
})

test('the end token has no entry; alternatives are shown in their place', () => {
  // A decoder that drops a leading space, as some tokenizers do.
  const trimming = (ids: readonly number[]): string => decode(ids).replace(/^ /, '')
  const trail = createLogprobTrail({ decode: trimming, endIds: new Set([END]) })
  const [a = 0, space = 0] = idsOf('a ')
  trail.add({ token: a, logprob: -1, text: 'a', top: [] })
  trail.add({
    token: space,
    logprob: -2,
    text: ' ',
    top: [space, a, END].map((token) => ({ token, logprob: -3 })),
  })
  trail.add({ token: END, logprob: -4, text: '', top: [] })
  const entries = trail.release('a ')
  expect(entries.map(({ text }) => text)).toEqual(['a', ' '])
  expect(entries[1]?.top.map(({ text }) => text)).toEqual([' ', 'a', ''])
  expect(trail.end()).toEqual([])
})
