import type { BlockRange } from '../model/block-range.ts'
import { layersIn, type PlanDevice } from './device.ts'
import { layerCap, longestFrom, type PlanContext } from './fit.ts'

export type Placement = { readonly device: PlanDevice; readonly range: BlockRange }

type Filled = {
  readonly placements: readonly Placement[]
  readonly gaps: readonly BlockRange[]
  readonly left: readonly PlanDevice[]
}

/**
 * Gives the gaps of a chain to free devices, one after the other: the device that takes the most layers
 * first, then the one that has most of them stored, then the fastest. `stages` already exist in the chain.
 */
export function fillGaps(
  context: PlanContext,
  input: {
    readonly gaps: readonly BlockRange[]
    readonly free: readonly PlanDevice[]
    readonly stages: number
  },
): Filled {
  const placements: Placement[] = []
  let gaps = [...input.gaps]
  let left = [...input.free]
  for (;;) {
    const best = bestPlacement(context, gaps, left, input.stages + placements.length)
    if (best === null) return { placements, gaps, left }
    placements.push(best)
    left = left.filter((device) => device !== best.device)
    gaps = gaps.flatMap((gap) => without(gap, best.range))
  }
}

function bestPlacement(
  context: PlanContext,
  gaps: readonly BlockRange[],
  free: readonly PlanDevice[],
  stages: number,
): Placement | null {
  const layersLeft = gaps.reduce((sum, gap) => sum + layersIn(gap, context.model.layerCount), 0)
  const layers = layerCap(context, layersLeft, stages)
  let best: Ranked | null = null
  for (const device of free) {
    const placed = placeOne(context, device, { gaps, layers })
    if (placed && (best === null || betterThan(context, placed, best))) best = placed
  }
  return best
}

type Ranked = Placement & { readonly layers: number; readonly cachedBytes: number }

/** The first gap the device can begin, unless what it has stored lies elsewhere in the gaps. */
function placeOne(
  context: PlanContext,
  device: PlanDevice,
  bounds: { readonly gaps: readonly BlockRange[]; readonly layers: number },
): Ranked | null {
  let best: Ranked | null = null
  for (const gap of bounds.gaps) {
    for (const start of startsIn(context, device, gap)) {
      const longest = longestFrom(context, device, start, { limit: gap.end, layers: bounds.layers })
      if (longest === null) continue
      const range = storedPart(context, device, longest)
      const cachedBytes = context.stored.bytes(device, range)
      if (best !== null && cachedBytes <= best.cachedBytes) continue
      best = { device, range, cachedBytes, layers: layersIn(range, context.model.layerCount) }
    }
    // With nothing stored every gap that fits costs the same download.
    if (best !== null && device.cached.size === 0) break
  }
  return best
}

/**
 * What is stored of a range, from its start, where that is half of its layers or more: a device that
 * returns then serves without a download, at the price of a somewhat shorter stage.
 */
function storedPart(context: PlanContext, device: PlanDevice, range: BlockRange): BlockRange {
  let end = range.start
  while (end < range.end && context.stored.has(device, end)) end += 1
  const { layerCount } = context.model
  const stored = { start: range.start, end }
  const layers = layersIn(stored, layerCount)
  return layers > 0 && 2 * layers >= layersIn(range, layerCount) ? stored : range
}

/** The gap's start, and where a run of stored blocks begins in it. */
function startsIn(context: PlanContext, device: PlanDevice, gap: BlockRange): number[] {
  const inside = context.stored.starts(device).filter((at) => at > gap.start && at < gap.end)
  return [gap.start, ...inside]
}

function betterThan(context: PlanContext, a: Ranked, b: Ranked): boolean {
  if (a.device.hidden !== b.device.hidden) return b.device.hidden
  if (a.layers !== b.layers) return a.layers > b.layers
  if (a.cachedBytes !== b.cachedBytes) return a.cachedBytes > b.cachedBytes
  const faster = context.msPerLayer(a.device) - context.msPerLayer(b.device)
  return faster === 0 ? a.device.peer < b.device.peer : faster < 0
}

function without(gap: BlockRange, taken: BlockRange): BlockRange[] {
  if (taken.end <= gap.start || taken.start >= gap.end) return [gap]
  const parts: BlockRange[] = []
  if (gap.start < taken.start) parts.push({ start: gap.start, end: taken.start })
  if (taken.end < gap.end) parts.push({ start: taken.end, end: gap.end })
  return parts
}
