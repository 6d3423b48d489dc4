import { formatBytes, formatSeconds } from './format.ts'

export type ProgressOutput = {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

export type ProgressLine = {
  /** `unit`: bytes, with speed and time left, or things that are counted. */
  show(progress: {
    readonly done: number
    readonly total: number
    readonly unit: 'bytes' | 'blocks'
  }): void
  /** A line of its own in between. */
  say(line: string): void
  /** Leaves the cursor on a line of its own. Idempotent. */
  close(): void
}

const ERASE_LINE = '\r\u001b[2K'
const REDRAW_MS = 100
/** Speed is that of about the last five seconds. */
const SPEED_WINDOW_MS = 5_000
const BAR_MAX = 30

/** A bar that is redrawn on a terminal; elsewhere one line for every tenth, so that logs stay readable. */
export function createProgressLine(
  label: string,
  output: ProgressOutput,
  now: () => number,
): ProgressLine {
  let drawnAt = -Infinity
  let tenth = -1
  let open = false
  const samples: { readonly at: number; readonly done: number }[] = []

  function speed(done: number): number | null {
    const at = now()
    const newest = samples.at(-1)
    if (newest === undefined || at - newest.at >= SPEED_WINDOW_MS / 10) samples.push({ at, done })
    while (samples.length > 2 && at - (samples[1]?.at ?? at) >= SPEED_WINDOW_MS) samples.shift()
    const oldest = samples[0]
    if (oldest === undefined || at - oldest.at < 500 || done <= oldest.done) return null
    return ((done - oldest.done) / (at - oldest.at)) * 1000
  }

  return {
    show({ done, total, unit }) {
      const share = total === 0 ? 1 : done / total
      const perSecond = speed(done)
      const text = unit === 'bytes' ? bytesText(done, total, perSecond) : `${done} of ${total}`
      if (output.isTTY !== true) {
        const reached = Math.floor(share * 10)
        if (reached <= tenth) return
        tenth = reached
        output.write(`${label}: ${reached * 10} %, ${text}\n`)
        return
      }
      if (now() - drawnAt < REDRAW_MS && done < total) return
      drawnAt = now()
      open = true
      output.write(`${ERASE_LINE}${bar(label, share, text, output.columns ?? 80)}`)
    },
    say(line) {
      output.write(open ? `${ERASE_LINE}${line}\n` : `${line}\n`)
      open = false
    },
    close() {
      if (open) output.write('\n')
      open = false
    },
  }
}

function bytesText(done: number, total: number, perSecond: number | null): string {
  const size = `${formatBytes(done)} of ${formatBytes(total)}`
  if (perSecond === null || done >= total) return size
  return `${size}, ${formatBytes(perSecond)}/s, ${formatSeconds((total - done) / perSecond)} left`
}

/** What does not fit goes first the bar, then the end of the text. */
function bar(label: string, share: number, text: string, columns: number): string {
  const percent = `${Math.floor(share * 100)}`.padStart(3)
  const words = `${label} ${percent} % ${text}`
  const room = Math.min(BAR_MAX, columns - 1 - words.length - 3)
  if (room < 5) return words.slice(0, columns - 1)
  const filled = Math.round(share * room)
  return `${label} [${'#'.repeat(filled)}${'.'.repeat(room - filled)}] ${percent} % ${text}`
}
