import { CrowdError } from '../core/errors.ts'
import type { ActivationFrame, Frame, TokenFrame } from '../core/wire/frame.ts'

/** What may come in for a session in one epoch. What else a header could say is not left to whoever sends it. */
export type FramesIn = {
  /** Position of the first row that is to come. @throws CrowdError bad-frame: another one came already */
  begin(from: number): void
  /** A frame came. @throws CrowdError bad-frame: it isn't the one that is next */
  take(frame: Frame): void
}

/**
 * Rows come one behind the other, and a token is sampled after the last row of the text so far and after each row from
 * there on, nowhere else; every stage knows that without being told, so none between could move it unseen.
 */
export function createFramesIn(options: {
  /** Tokens that the text had when the epoch was opened: of the prompt, and of the answer. */
  readonly promptLength: number
  readonly answered: number
  readonly contextLength: number
}): FramesIn {
  /** Position of the first row that came, and of the one that is next. */
  let first: number | null = null
  let next: number | null = null
  /** Position of the token that is sampled next. */
  let token = options.promptLength + options.answered

  function takeRows({ position, tokenCount, sample }: ActivationFrame): void {
    const end = position + tokenCount
    if (next !== null && position !== next)
      throw badFrame(`rows from position ${position} on, where ${next} was next`)
    if (end > options.contextLength)
      throw badFrame(`rows up to ${end} of a context of ${options.contextLength}`)
    if (end > token) throw badFrame(`rows up to ${end}, before token ${token} was chosen`)
    if (sample !== (end === token))
      throw badFrame(`${sample ? 'a' : 'no'} token to sample at ${end}, where ${token} is next`)
    first ??= position
    next = end
    if (sample) token += 1
  }

  function takeToken({ position }: TokenFrame): void {
    if (position !== token) throw badFrame(`a token at ${position}, where ${token} was next`)
    if (position >= options.contextLength)
      throw badFrame(`a token at ${position} of a context of ${options.contextLength}`)
    token += 1
  }

  return {
    begin(from) {
      if (first !== null && first !== from)
        throw badFrame(`rows from position ${first} on, where ${from} was next`)
      next ??= from
    },
    take(frame) {
      if (frame.kind === 'token') takeToken(frame)
      else takeRows(frame)
    },
  }
}

function badFrame(what: string): CrowdError {
  return new CrowdError('bad-frame', `bad frame: ${what}`)
}
