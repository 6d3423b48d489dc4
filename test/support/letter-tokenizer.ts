import type { Tokenizer } from '../../sdk/client/tokenizer.ts'

/** Control tokens; 2 is the end token of the hosts in tests. */
export const LETTER_CONTROL = { '<|turn|>': 1, '<|end|>': 2 }

/** The characters that have a token, from id 3 on: ASCII and a line's end; all fit a vocabulary of 100. */
const FIRST_ID = 3
const CHARACTERS = `${String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index))}\n`
const UNKNOWN = '?'
const SPELLING = /(<\|end\|>|<\|turn\|>)/

/** A Tokenizer that needs no files: one token for each character. A chat is its turns, each begun by a token. */
export function createLetterTokenizer(): Tokenizer {
  return {
    encode: (text, { control = false } = {}) =>
      control ? text.split(SPELLING).flatMap(part) : letters(text),
    decode: (ids) => ids.map((id) => CHARACTERS[id - FIRST_ID] ?? '').join(''),
    encodeChat: (messages) =>
      messages.flatMap(({ content }) => [LETTER_CONTROL['<|turn|>'], ...letters(content)]),
  }
}

export function letters(text: string): number[] {
  return Array.from(text, (letter) => {
    const index = CHARACTERS.indexOf(letter)
    return FIRST_ID + (index < 0 ? CHARACTERS.indexOf(UNKNOWN) : index)
  })
}

function part(text: string): number[] {
  const id = Object.entries(LETTER_CONTROL).find(([spelling]) => spelling === text)?.[1]
  return id === undefined ? letters(text) : [id]
}
