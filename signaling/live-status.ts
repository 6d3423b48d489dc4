/** A line that is rewritten in place on a terminal, and printed anew elsewhere. */
type LiveStatus = {
  /** Shows the line if it differs from the last one. */
  show(line: string): void
  /** Leaves the cursor on a line of its own. */
  close(): void
}

type StatusOutput = {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** Where lines can't be rewritten they go out at most this often, so that logs stay readable. */
const LOG_EVERY_MS = 1_000

const ERASE_LINE = '\r\u001b[2K'

export function createLiveStatus(output: StatusOutput, now: () => number): LiveStatus {
  let shown = ''
  let shownAt = -Infinity
  let open = false
  return {
    show(line) {
      if (line === shown) return
      if (output.isTTY === true) {
        output.write(
          `${ERASE_LINE}  ${line}`.slice(0, ERASE_LINE.length + (output.columns ?? 80) - 1),
        )
        open = true
      } else {
        if (now() - shownAt < LOG_EVERY_MS) return
        output.write(`${line}\n`)
      }
      shown = line
      shownAt = now()
    },
    close() {
      if (open) output.write('\n')
      open = false
    },
  }
}
