import { CrowdError } from '../../sdk/core/errors.ts'
import type { Tokenizer } from '../../sdk/client/tokenizer.ts'

/** About 0.1 s of a slow machine: the host's sockets and timers must not wait longer. */
const PIECE_CHARS = 32 * 1024
/** A cut inside a word makes a few tokens more than the text has. */
const CUT_TOKENS = 64

/**
 * Refuses texts that can't fit the window without tokenizing all of them in one go, which would stop the whole
 * ring for seconds: counts piece by piece, lets others run in between, and ends at the first piece that is too many.
 * Short texts pass at once; what passes is counted exactly where it is encoded.
 * @throws CrowdError prompt-too-long
 */
export async function refuseTooLong(
  tokenizer: Pick<Tokenizer, 'encode'>,
  texts: readonly string[],
  contextLength: number,
): Promise<void> {
  const chars = texts.reduce((sum, text) => sum + text.length, 0)
  if (chars <= PIECE_CHARS) return
  let tokens = 0
  let pieces = 0
  for (const piece of cut(texts)) {
    tokens += tokenizer.encode(piece).length
    pieces += 1
    const surely = tokens - pieces * CUT_TOKENS
    if (surely >= contextLength)
      throw new CrowdError(
        'prompt-too-long',
        `the conversation has at least ${surely} tokens and the model holds ${contextLength}, answer included`,
      )
    await new Promise<void>((resolve) => {
      setImmediate(resolve)
    })
  }
}

function* cut(texts: readonly string[]): Generator<string> {
  for (const text of texts)
    for (let start = 0; start < text.length; start += PIECE_CHARS)
      yield text.slice(start, start + PIECE_CHARS)
}
