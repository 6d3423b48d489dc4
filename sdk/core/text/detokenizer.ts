const REPLACEMENT = '\uFFFD'
/** The window is cut back when it is this long, to at least `KEEP_IDS` tokens, so decoding stays cheap. */
const WINDOW_IDS = 24
const KEEP_IDS = 4
const CUT_TRIES = 12
/** More tokens than that do not hang on one character: what looks incomplete is broken, and is given out. */
const HELD_IDS_MAX = 16
/** A character has at most 4 bytes, so at most 3 may still be waiting for the last one. */
const OPEN_BYTES_MAX = 3

export type Detokenizer = {
  /** The text that became certain with this token; '' while a character is incomplete. */
  push(id: number): string
  /** What is still held, incomplete as it is. Call once, at the end. */
  flush(): string
}

/**
 * Text as tokens arrive. A token may end in the middle of a character, so what a decoder shows as a
 * trailing replacement mark is held until it is complete; nothing else is. Concatenated deltas and the
 * flush equal `decode` of all ids at once, also for broken bytes.
 *
 *     const detokenizer = createDetokenizer((ids) => tokenizer.decode(ids))
 *     for (const id of ids) show(detokenizer.push(id))
 *     show(detokenizer.flush())
 */
export function createDetokenizer(decode: (ids: readonly number[]) => string): Detokenizer {
  let window: number[] = []
  /** Characters of the window's text that were given out. */
  let given = 0
  let heldIds = 0

  function push(id: number): string {
    window.push(id)
    heldIds++
    const text = decode(window)
    const certain = text.length - openLength(text, heldIds)
    const delta = text.slice(given, certain)
    given = Math.max(given, certain)
    if (certain < text.length) return delta
    heldIds = 0
    if (window.length >= WINDOW_IDS) cutWindow(text)
    return delta
  }

  /** Drops old tokens where the rest decodes to the same end, so never inside a character. */
  function cutWindow(text: string): void {
    for (let keep = KEEP_IDS; keep < KEEP_IDS + CUT_TRIES; keep++) {
      const rest = window.slice(-keep)
      const restText = decode(rest)
      const fits = restText !== '' && !restText.startsWith(REPLACEMENT) && text.endsWith(restText)
      if (!fits) continue
      window = rest
      given = restText.length
      return
    }
  }

  return {
    push,
    flush() {
      const rest = decode(window).slice(given)
      given += rest.length
      return rest
    },
  }
}

/** How many characters at the end may still change with the next token. */
function openLength(text: string, heldIds: number): number {
  let length = 0
  while (length < text.length && text.charAt(text.length - 1 - length) === REPLACEMENT) length++
  return heldIds > HELD_IDS_MAX ? Math.min(length, OPEN_BYTES_MAX) : length
}
