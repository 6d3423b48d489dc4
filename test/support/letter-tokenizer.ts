import type { Tokenizer } from '../../sdk/client/tokenizer.ts'

/** Control tokens; the other ids are code points. */
export const LETTER_CONTROL = { '<|end|>': 0, '<|turn|>': 0x11_0000 }

const SPELLING = /(<\|end\|>|<\|turn\|>)/

/** A Tokenizer that needs no files: one token for each character. A chat is its turns, each begun by a token. */
export function createLetterTokenizer(): Tokenizer {
  return {
    encode: (text, { control = false } = {}) =>
      control ? text.split(SPELLING).flatMap(part) : letters(text),
    decode: (ids) =>
      ids
        .filter((id) => !Object.values(LETTER_CONTROL).includes(id))
        .map((id) => String.fromCodePoint(id))
        .join(''),
    encodeChat: (messages) =>
      messages.flatMap(({ content }) => [LETTER_CONTROL['<|turn|>'], ...letters(content)]),
  }
}

export function letters(text: string): number[] {
  return Array.from(text, (letter) => letter.codePointAt(0) ?? 0)
}

function part(text: string): number[] {
  const id = Object.entries(LETTER_CONTROL).find(([spelling]) => spelling === text)?.[1]
  return id === undefined ? letters(text) : [id]
}
