import type { Tokenizer } from '../../sdk/client/tokenizer.ts'

const FIRST_ID = 3
const FIRST_CODE = 32
const LAST_CODE = 126

/** One token for each printable character of ASCII, 3 to 97; other ids are control tokens, as the end token 2 is. */
export function letterTokenizer(): Tokenizer {
  const encode = (text: string): number[] =>
    Array.from(text, (letter) => {
      const code = letter.charCodeAt(0)
      const shown = code >= FIRST_CODE && code <= LAST_CODE ? code : 63
      return shown - FIRST_CODE + FIRST_ID
    })
  return {
    encode,
    decode: (ids) =>
      ids
        .filter((id) => id >= FIRST_ID && id <= LAST_CODE - FIRST_CODE + FIRST_ID)
        .map((id) => String.fromCharCode(id - FIRST_ID + FIRST_CODE))
        .join(''),
    encodeChat: (messages) => encode(messages.map(({ content }) => content).join('')),
  }
}
