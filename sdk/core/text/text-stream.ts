import { createDetokenizer } from './detokenizer.ts'
import { createStopMatcher, type StopMatch } from './stop-matcher.ts'

export type TextStream = {
  /** `raw` is the text that became certain with this token, before anything is held back for a stop string. */
  push(id: number): StopMatch & { readonly raw: string }
  /** The rest of the text, after the last token. `stopped` when an incomplete end completed a stop string. */
  end(): StopMatch
}

/**
 * Tokens to shown text: whole characters only, cut before the first stop string. The one decoder that
 * every path uses, so that chat, completions and API cannot differ.
 */
export function createTextStream(options: {
  readonly decode: (ids: readonly number[]) => string
  readonly stops: readonly string[]
}): TextStream {
  const detokenizer = createDetokenizer(options.decode)
  const matcher = createStopMatcher(options.stops)
  return {
    push(id) {
      const raw = detokenizer.push(id)
      return { ...matcher.push(raw), raw }
    },
    end() {
      const last = matcher.push(detokenizer.flush())
      return { text: last.text + matcher.flush(), stopped: last.stopped }
    },
  }
}
