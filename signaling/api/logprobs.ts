import type { SampledToken } from '../../sdk/core/sampling/params.ts'

/** One token of an answer, as the log-probabilities show it. */
export type TokenLogprob = {
  /** The text that became certain with this token, so that tokens join up to the answer. */
  readonly text: string
  readonly logprob: number
  readonly top: readonly { readonly text: string; readonly logprob: number }[]
}

type Chosen = {
  readonly token: number
  readonly logprob: number
  readonly text: string
  readonly top: SampledToken['top']
}

/**
 * Lets log-probabilities out together with the text that they belong to: not before it, cut where it is cut,
 * and none for tokens that are never shown (the end token, a stop string).
 */
export type LogprobTrail = {
  add(chosen: Chosen): void
  /** Entries of the text that was shown since the last call; `shown` is that text. */
  release(shown: string): TokenLogprob[]
  /** At the end: what was shown in part, cut. */
  end(): TokenLogprob[]
}

/** How much of the answer before a token is decoded together with an alternative to it. */
const CONTEXT_IDS = 4
const REPLACEMENT = '\uFFFD'

export function createLogprobTrail(options: {
  decode(ids: readonly number[]): string
  /** Tokens that end an answer. */
  readonly endIds: ReadonlySet<number>
}): LogprobTrail {
  const waiting: { entry: TokenLogprob; start: number }[] = []
  let before: number[] = []
  let added = 0
  let shownLength = 0

  /** The alternative's own text in its place: some tokenizers drop the space before a first token. */
  function textOf(token: number): string {
    const context = options.decode(before)
    const whole = options.decode([...before, token])
    const fits = !context.endsWith(REPLACEMENT) && whole.startsWith(context)
    return fits ? whole.slice(context.length) : options.decode([token])
  }

  return {
    add({ token, logprob, text, top }) {
      if (!options.endIds.has(token)) {
        const alternatives = top.map((other) => ({
          text: other.token === token ? text : textOf(other.token),
          logprob: other.logprob,
        }))
        waiting.push({ entry: { text, logprob, top: alternatives }, start: added })
      }
      added += text.length
      before = [...before, token].slice(-CONTEXT_IDS)
    },
    release(shown) {
      shownLength += shown.length
      const released: TokenLogprob[] = []
      for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
        const { entry, start } = next
        if (start + entry.text.length > shownLength) break
        released.push(entry)
        waiting.shift()
      }
      return released
    },
    end() {
      const rest = waiting.splice(0).filter(({ start }) => start < shownLength)
      return rest.map(({ entry, start }) => ({
        ...entry,
        text: entry.text.slice(0, shownLength - start),
        // The alternatives of a token that is cut could spell the rest of it.
        top: [],
      }))
    },
  }
}
