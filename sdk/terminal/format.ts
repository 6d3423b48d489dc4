/** `999 B`, `12.3 kB`, `4.76 GB` */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2
  return `${value.toFixed(digits)} ${units[unit] ?? ''}`
}

/** `1.24 B`, `135 M` */
export function formatCount(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} B`
  return count >= 1e6 ? `${Math.round(count / 1e6)} M` : String(count)
}

/** Seconds as `12 s`, `3 min`, `2 h 5 min`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 100) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Columns as wide as they must be; the last one is cut where the terminal ends. */
export function table(rows: readonly (readonly string[])[], columns: number): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  return rows.map((row) => {
    const line = row.map((cell, column) =>
      column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
    )
    return cutLine(line.join('  ').trimEnd(), columns)
  })
}

export function cutLine(line: string, columns: number): string {
  return line.length <= columns ? line : `${line.slice(0, Math.max(1, columns - 1))}…`
}

/** Names and paths are others' text: control characters must not reach a terminal. */
export function plain(text: string): string {
  return text.replace(/\p{Cc}/gu, '?')
}
