import type { BlockRange } from '../model/block-range.ts'
import type { PeerId } from '../ids.ts'
import type { PlanDevice } from './device.ts'
import { longestFrom, type PlanContext } from './fit.ts'
import { fastestMs } from './replicas.ts'
import { strength, type Span } from './spans.ts'

/**
 * What devices that hold nothing keep stored, so that they can step in without a download: of the weakest span as much
 * as they could load, from its start. What a spare keeps already it goes on keeping.
 */
export function keepPieces(
  context: PlanContext,
  spans: readonly Span[],
  spares: readonly PlanDevice[],
): ReadonlyMap<PeerId, BlockRange> {
  const kept = new Map<PeerId, BlockRange>()
  const known = spans.map((span) => ({
    span,
    ms: fastestMs(context, span),
    copies: strength(span),
  }))
  const take = (device: PlanDevice, one: (typeof known)[number], range: BlockRange): void => {
    kept.set(device.peer, range)
    one.copies += 1
  }
  const visibleFirst = [...spares].sort((a, b) => Number(a.hidden) - Number(b.hidden))
  for (const device of visibleFirst) {
    const one = known.find(({ span }) => span.range.start === device.keep?.start)
    const range = one && loadable(context, device, one.span)
    if (one && range && range.end === device.keep?.end) take(device, one, range)
  }
  for (const device of visibleFirst) {
    if (kept.has(device.peer)) continue
    const order = [...known].sort(
      (a, b) => a.copies - b.copies || b.ms - a.ms || a.span.range.start - b.span.range.start,
    )
    for (const one of order) {
      const range = loadable(context, device, one.span)
      if (range === null) continue
      take(device, one, range)
      break
    }
  }
  return kept
}

function loadable(context: PlanContext, device: PlanDevice, { range }: Span): BlockRange | null {
  const bounds = { limit: range.end, layers: context.maxLayers }
  return longestFrom(context, device, range.start, bounds)
}
