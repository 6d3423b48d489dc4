export type StopMatch = { readonly text: string; readonly stopped: boolean }

export type StopMatcher = {
  /** Text that may be shown; once `stopped`, nothing more ever is. */
  push(text: string): StopMatch
  /** What was held because it looked like the beginning of a stop string. Call at the end. */
  flush(): string
}

/**
 * Ends a text before the first stop string, wherever the pieces are cut. Held back is only a suffix that is
 * a proper prefix of a stop string. First means completed first; of two that end at the same character
 * the longer one, so the result does not depend on how the text arrives. Empty stop strings are ignored.
 *
 *     createStopMatcher(['\n\n']).push('one\n') // { text: 'one', stopped: false }
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  const wanted = stops.filter((stop) => stop !== '')
  let held = ''
  let stopped = false

  return {
    push(text) {
      if (stopped) return { text: '', stopped }
      const seen = held + text
      const start = firstStop(seen, wanted)
      if (start >= 0) {
        stopped = true
        held = ''
        return { text: seen.slice(0, start), stopped }
      }
      const shown = seen.length - heldLength(seen, wanted)
      held = seen.slice(shown)
      return { text: seen.slice(0, shown), stopped }
    },
    flush() {
      const rest = held
      held = ''
      return rest
    },
  }
}

/** Where the stop string that is completed first begins; -1 when there is none. */
function firstStop(text: string, stops: readonly string[]): number {
  let bestStart = -1
  let bestEnd = Infinity
  for (const stop of stops) {
    const start = text.indexOf(stop)
    if (start < 0) continue
    const end = start + stop.length
    if (end < bestEnd || (end === bestEnd && start < bestStart)) {
      bestStart = start
      bestEnd = end
    }
  }
  return bestStart
}

/** Length of the longest suffix that is a proper prefix of a stop string. */
function heldLength(text: string, stops: readonly string[]): number {
  let longest = 0
  for (const stop of stops) {
    for (let size = Math.min(stop.length - 1, text.length); size > longest; size--) {
      if (text.endsWith(stop.slice(0, size))) longest = size
    }
  }
  return longest
}
