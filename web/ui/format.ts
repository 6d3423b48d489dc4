/** Numbers for people. 1 kB = 1,000 bytes, as on a drive's label. */
const GROUPED = new Intl.NumberFormat('en')

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  if (bytes < 1_000_000) return `${trim(bytes / 1_000)} kB`
  if (bytes < 1_000_000_000) return `${trim(bytes / 1_000_000)} MB`
  return `${trim(bytes / 1_000_000_000)} GB`
}

/** `0.42 ms`, `7.5 ms`, `320 ms`, `4.2 s`, `2 min 5 s`. */
export function formatMs(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

export function formatCount(count: number): string {
  return GROUPED.format(count)
}

/** `1 layer`, `2 layers`. */
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

export function formatPercent(share: number): string {
  return `${Math.round(share * 100)}%`
}

function trim(value: number): string {
  if (value >= 100) return String(Math.round(value))
  return String(Math.round(value * 10) / 10)
}
