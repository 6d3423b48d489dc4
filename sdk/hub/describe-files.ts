import type { HubFile } from './hub-files.ts'

const SHOWN_MAX = 24

/** `model.bin (1.2 GB), README.md (4 kB)`: weights first, and no more than a terminal shows. */
export function describeFiles(files: readonly HubFile[]): string {
  const bySize = [...files].sort((a, b) => b.bytes - a.bytes)
  const shown = bySize.slice(0, SHOWN_MAX).map(({ path, bytes }) => `${path} (${size(bytes)})`)
  const more = files.length - shown.length
  if (shown.length === 0) return 'nothing'
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}

function size(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`
  return bytes >= 1e6 ? `${Math.round(bytes / 1e6)} MB` : `${Math.ceil(bytes / 1e3)} kB`
}
