import { sameRange, type BlockRange } from '../model/block-range.ts'
import { layersIn, msPerLayer, type PlanDevice } from './device.ts'
import { fits, type PlanContext } from './fit.ts'
import type { Placement } from './fill.ts'

/** A stage of the chain and who holds exactly its range. */
type Span = { readonly range: BlockRange; readonly holders: readonly PlanDevice[] }

/**
 * Gives devices that no gap needs to the weakest span that they can hold: fewest visible holders, then the
 * slowest, then what the device has stored.
 */
export function placeReplicas(
  context: PlanContext,
  start: readonly Span[],
  free: readonly PlanDevice[],
): { readonly placements: readonly Placement[]; readonly spans: readonly Span[] } {
  let spans = [...start]
  const placements: Placement[] = []
  const order = [...free].sort(
    (a, b) => Number(a.hidden) - Number(b.hidden) || msPerLayer(a) - msPerLayer(b),
  )
  for (const device of order) {
    const span = weakestFor(context, spans, device)
    if (span === null) continue
    placements.push({ device, range: span.range })
    spans = spans.map((other) =>
      other === span ? { range: span.range, holders: [...span.holders, device] } : other,
    )
  }
  return { placements, spans }
}

/**
 * Moves one replica from the strongest span to a span that has at least two holders fewer; smaller
 * differences aren't worth a download. Only a device that isn't needed where it is may move.
 */
export function moveReplica(
  context: PlanContext,
  spans: readonly Span[],
  mayMove: (device: PlanDevice) => boolean,
): Placement | null {
  const strongest = [...spans].sort((a, b) => strength(b) - strength(a))[0]
  if (!strongest) return null
  for (const device of strongest.holders) {
    if (!mayMove(device)) continue
    if (device.ready && !strongest.holders.some((other) => other !== device && other.ready))
      continue
    const others = spans.filter((span) => strength(span) + 2 <= strength(strongest))
    const target = weakestFor(context, others, device)
    if (target) return { device, range: target.range }
  }
  return null
}

function weakestFor(context: PlanContext, spans: readonly Span[], device: PlanDevice): Span | null {
  const possible = spans.filter((span) => fits(context, device, span.range))
  const cached = (span: Span): number => context.cachedBytes(device, span.range)
  return (
    [...possible].sort(
      (a, b) =>
        strength(a) - strength(b) ||
        cached(b) - cached(a) ||
        bestMs(context, b) - bestMs(context, a) ||
        a.range.start - b.range.start,
    )[0] ?? null
  )
}

/** A hidden tab may stop at any moment, so it doesn't count. */
function strength(span: Span): number {
  return span.holders.filter((device) => !device.hidden).length
}

function bestMs(context: PlanContext, span: Span): number {
  const layers = layersIn(span.range, context.model.layerCount)
  return layers * Math.min(...span.holders.map(msPerLayer))
}

/** The spans of a chain with all their holders. */
export function spansOf(ranges: readonly BlockRange[], placed: readonly Placement[]): Span[] {
  return ranges.map((range) => ({
    range,
    holders: placed.filter((item) => sameRange(item.range, range)).map((item) => item.device),
  }))
}
