import { sameRange, type BlockRange } from '../model/block-range.ts'
import type { PlanDevice } from './device.ts'
import type { Placement } from './fill.ts'

/** A stage of a chain and who holds exactly its range. */
export type Span = { readonly range: BlockRange; readonly holders: readonly PlanDevice[] }

/** The spans of a chain with all their holders. */
export function spansOf(ranges: readonly BlockRange[], placed: readonly Placement[]): Span[] {
  return ranges.map((range) => ({
    range,
    holders: placed.filter((item) => sameRange(item.range, range)).map((item) => item.device),
  }))
}

/** Holders that count. A hidden tab may stop at any moment, so it doesn't. */
export function strength(span: Span): number {
  return span.holders.filter((device) => !device.hidden).length
}

/** Those of the placements that are part of some whole chain; no answer ever goes through the others. */
export function usefulOf(blockCount: number, placed: readonly Placement[]): readonly Placement[] {
  const byStart = [...placed].sort((a, b) => a.range.start - b.range.start)
  const fromStart = new Set([0])
  for (const { range } of byStart) if (fromStart.has(range.start)) fromStart.add(range.end)
  const byEnd = [...placed].sort((a, b) => b.range.end - a.range.end)
  const toEnd = new Set([blockCount])
  for (const { range } of byEnd) if (toEnd.has(range.end)) toEnd.add(range.start)
  return placed.filter(({ range }) => fromStart.has(range.start) && toEnd.has(range.end))
}

/** Ranges of placements that are in no span yet, each once. */
export function otherRanges(spans: readonly Span[], placed: readonly Placement[]): BlockRange[] {
  const found: BlockRange[] = []
  for (const { range } of placed) {
    const isKnown = (other: BlockRange): boolean => sameRange(other, range)
    if (spans.some((span) => isKnown(span.range)) || found.some(isKnown)) continue
    found.push(range)
  }
  return found
}
