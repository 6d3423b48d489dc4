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
  const keepers = new Map<Span, number>()
  const take = (device: PlanDevice, span: Span, range: BlockRange): void => {
    kept.set(device.peer, range)
    keepers.set(span, (keepers.get(span) ?? 0) + 1)
  }
  const visibleFirst = [...spares].sort((a, b) => Number(a.hidden) - Number(b.hidden))
  for (const device of visibleFirst) {
    const span = spans.find(({ range }) => range.start === device.keep?.start)
    const range = span && loadable(context, device, span)
    if (span && range && range.end === device.keep?.end) take(device, span, range)
  }
  for (const device of visibleFirst) {
    if (kept.has(device.peer)) continue
    const order = [...spans].sort(
      (a, b) =>
        strength(a) + (keepers.get(a) ?? 0) - strength(b) - (keepers.get(b) ?? 0) ||
        fastestMs(context, b) - fastestMs(context, a) ||
        a.range.start - b.range.start,
    )
    for (const span of order) {
      const range = loadable(context, device, span)
      if (range === null) continue
      take(device, span, range)
      break
    }
  }
  return kept
}

function loadable(context: PlanContext, device: PlanDevice, { range }: Span): BlockRange | null {
  const bounds = { limit: range.end, layers: context.maxLayers }
  return longestFrom(context, device, range.start, bounds)
}
