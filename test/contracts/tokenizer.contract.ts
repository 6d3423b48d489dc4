import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Tokenizer } from '../../sdk/client/tokenizer.ts'
import { createTextStream } from '../../sdk/core/text/text-stream.ts'

export type TokenizerContractOptions = {
  readonly make: () => Tokenizer
  /** Spellings of control tokens and their ids. */
  readonly control: Readonly<Record<string, number>>
  /** Texts that come back exactly. */
  readonly texts?: readonly string[]
}

export const TOKENIZER_TEXTS = [
  'Hello, world!',
  'one two  three',
  ' starts and ends with spaces ',
  'line\nbreak\n\nand\ttab',
  'é ü ñ, 한국어, 日本語',
  '🙂👩‍👩‍👧🏳️‍🌈',
  'e\u0301 is a letter and a mark',
  '1234567890 3.14',
  '{"json": [1, 2]}',
]

/** What every Tokenizer does. */
export function describeTokenizerContract(name: string, options: TokenizerContractOptions): void {
  const { make, control, texts = TOKENIZER_TEXTS } = options
  const controlIds = Object.values(control)

  describe(`${name} keeps the Tokenizer contract`, () => {
    const tokenizer = make()

    it('decodes what it encoded', () => {
      for (const text of texts) expect(tokenizer.decode(tokenizer.encode(text))).toBe(text)
    })

    it('streams any ids in any order to what decoding them at once gives', () => {
      const known = [
        ...new Set([...texts.flatMap((text) => tokenizer.encode(text)), ...controlIds]),
      ]
      fc.assert(
        fc.property(fc.array(fc.constantFrom(...known), { maxLength: 80 }), (ids) => {
          const { push, end } = createTextStream({
            decode: (some) => tokenizer.decode(some),
            stops: [],
          })
          const streamed = ids.map((id) => push(id).text).join('') + end().text
          expect(streamed).toBe(tokenizer.decode(ids))
        }),
        { numRuns: 300 },
      )
    })

    it('streams whole characters that add up to the text', () => {
      for (const text of texts) {
        const { push, end } = createTextStream({
          decode: (ids) => tokenizer.decode(ids),
          stops: [],
        })
        const deltas = tokenizer.encode(text).map((id) => push(id).text)
        expect(deltas.join('') + end().text).toBe(text)
        for (const delta of deltas) expect(delta).not.toContain('\uFFFD')
      }
    })

    it('has nothing to say for nothing', () => {
      expect(tokenizer.decode([])).toBe('')
      expect(tokenizer.decode(tokenizer.encode(''))).toBe('')
    })

    it('leaves control tokens out of the text', () => {
      expect(tokenizer.decode(controlIds)).toBe('')
      const ids = tokenizer.encode('ab')
      expect(tokenizer.decode([...controlIds, ...ids, ...controlIds])).toBe('ab')
    })

    it('keeps typed control tokens as text, in plain text and in chats', () => {
      const frame = tokenizer.encode('').length
      const usual = countControls(tokenizer.encodeChat([{ role: 'user', content: 'x' }]))
      for (const spelling of Object.keys(control)) {
        for (const text of [spelling, `a ${spelling} b`, spelling + spelling, ` ${spelling}\n`]) {
          const ids = tokenizer.encode(text)
          expect(countControls(ids)).toBe(frame)
          // Some tokenizers give the space at the beginning of a text away.
          expect(tokenizer.decode(ids).trim()).toBe(text.trim())
          const chat = tokenizer.encodeChat([{ role: 'user', content: text }])
          expect(countControls(chat)).toEqual(usual)
          expect(tokenizer.decode(chat)).toContain(text.trim())
        }
      }
    })

    it('uses control tokens for the template, one turn after the other', () => {
      const one = tokenizer.encodeChat([{ role: 'user', content: 'Hi' }])
      expect(countControls(one)).toBeGreaterThan(0)
      const three = tokenizer.encodeChat([
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello!' },
        { role: 'user', content: 'How are you?' },
      ])
      expect(countControls(three)).toBeGreaterThan(countControls(one))
      expect(tokenizer.decode(three)).toContain('Hello!')
    })

    function countControls(ids: readonly number[]): number {
      return ids.filter((id) => controlIds.includes(id)).length
    }
  })
}
