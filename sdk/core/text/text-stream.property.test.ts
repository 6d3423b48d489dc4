import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTextStream } from './text-stream.ts'

/** Any text, with a liking for what is hard to cut: several bytes, joined signs, parts of stop strings. */
const hardText = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 4 }),
      fc.constantFrom(
        'a',
        'aa',
        'ab',
        'STOP',
        'STO',
        '👩‍👩‍👧',
        'e\u0301',
        '한국',
        '\uFFFD',
        '</s',
        '>',
        '\n',
      ),
    ),
    { maxLength: 20 },
  )
  .map((parts) => parts.join(''))

const stopStrings = fc.array(
  fc.oneof(
    fc.constantFrom('STOP', 'TOP', '</s>', 'aab', 'aa', '🙂', '\u0301', 'b\n', '국a'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }),
  ),
  { maxLength: 4 },
)

/** Bytes cut into tokens wherever the sizes say; the last token takes the rest. */
function tokensOf(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const tokens: Uint8Array[] = []
  let start = 0
  for (const size of sizes) {
    if (start + size >= bytes.length) break
    tokens.push(bytes.subarray(start, start + size))
    start += size
  }
  return start < bytes.length ? [...tokens, bytes.subarray(start)] : tokens
}

const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 200 })

function decoder(tokens: readonly Uint8Array[]): (ids: readonly number[]) => string {
  return (ids) => {
    const bytes = Uint8Array.from(ids.flatMap((id) => [...(tokens[id] ?? [])]))
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  }
}

/** Everything that was shown, piece by piece, up to a stop string or the end. */
function pieces(tokens: readonly Uint8Array[], stops: readonly string[]): string[] {
  const stream = createTextStream({ decode: decoder(tokens), stops })
  const shown: string[] = []
  for (const id of tokens.keys()) {
    const piece = stream.push(id)
    shown.push(piece.text)
    if (piece.stopped) return shown
  }
  return [...shown, stream.end().text]
}

/** The specification: the text before the stop string that is completed first, the longest of those. */
function cutAtStop(text: string, stops: readonly string[]): string {
  for (let end = 1; end <= text.length; end++) {
    const ended = stops.filter((stop) => text.slice(0, end).endsWith(stop))
    if (ended.length > 0) return text.slice(0, end - Math.max(...ended.map((stop) => stop.length)))
  }
  return text
}

describe('any text, cut into tokens anywhere', () => {
  it('streams to what decoding at once gives, up to the first stop string', () => {
    fc.assert(
      fc.property(hardText, sizes, stopStrings, (text, cuts, stops) => {
        const tokens = tokensOf(new TextEncoder().encode(text), cuts)
        expect(pieces(tokens, stops).join('')).toBe(cutAtStop(text, stops))
      }),
      { numRuns: 3_000 },
    )
  })

  it('never shows a stop string, nor anything that is taken back later', () => {
    fc.assert(
      fc.property(hardText, sizes, stopStrings, (text, cuts, stops) => {
        const tokens = tokensOf(new TextEncoder().encode(text), cuts)
        const expected = cutAtStop(text, stops)
        let shown = ''
        for (const piece of pieces(tokens, stops)) {
          shown += piece
          expect(expected.startsWith(shown)).toBe(true)
        }
        for (const stop of stops) expect(shown).not.toContain(stop)
      }),
      { numRuns: 1_000 },
    )
  })

  it('streams any bytes at all to what decoding at once gives', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), sizes, (bytes, cuts) => {
        const tokens = tokensOf(bytes, cuts)
        const whole = decoder(tokens)([...tokens.keys()])
        expect(pieces(tokens, []).join('')).toBe(whole)
      }),
      { numRuns: 2_000 },
    )
  })
})
