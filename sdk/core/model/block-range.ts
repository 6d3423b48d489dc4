/**
 * A contiguous run of blocks, half open: `start` is in, `end` is out. Block 0 is the embedding, blocks
 * 1..L are the decoder layers and block L+1 is the head (final norm and output projection).
 */
export type BlockRange = { readonly start: number; readonly end: number }

export function blockCount(range: BlockRange): number {
  return range.end - range.start
}

export function contains(range: BlockRange, block: number): boolean {
  return block >= range.start && block < range.end
}

export function sameRange(a: BlockRange | null, b: BlockRange | null): boolean {
  return a === b || (a !== null && b !== null && a.start === b.start && a.end === b.end)
}

/** `layers 4–6`, `embedding and layers 1–3`, `layers 5–6 and head`: how people read a range. */
export function describeRange(range: BlockRange, layerCount: number): string {
  const first = Math.max(range.start, 1)
  const last = Math.min(range.end - 1, layerCount)
  const parts: string[] = []
  if (range.start === 0) parts.push('embedding')
  if (first === last) parts.push(`layer ${first}`)
  else if (first < last) parts.push(`layers ${first}–${last}`)
  if (range.end === layerCount + 2) parts.push('head')
  return parts.join(' and ')
}
