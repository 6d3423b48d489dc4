import type { PeerId } from '../ids.ts'
import type { BlockRange } from '../model/block-range.ts'

/** A ready stage as the router sees it. */
export type RouteStage = {
  readonly peer: PeerId
  readonly range: BlockRange
  /** Predicted ms of one decode step here, load and hidden tab included. */
  readonly stepMs: number
}

export type Route = {
  readonly stages: readonly RouteStage[]
  /** Predicted ms of one lap: all steps and all hops. */
  readonly lapMs: number
}

export type HopCost = (from: PeerId, to: PeerId) => number

/**
 * The cheapest chain of ready stages from the first block to the last, by predicted lap: the sum of the
 * steps and of the hops, the one from the last stage back to the first included. null = not covered.
 */
export function cheapestRoute(
  blockCount: number,
  stages: readonly RouteStage[],
  hopMs: HopCost,
): Route | null {
  const ordered = [...stages].sort(
    (a, b) => a.range.start - b.range.start || (a.peer < b.peer ? -1 : 1),
  )
  let best: Route | null = null
  for (const first of ordered) {
    if (first.range.start !== 0) break
    const route = cheapestFrom(blockCount, first, { ordered, hopMs })
    if (route && (best === null || route.lapMs < best.lapMs)) best = route
  }
  return best
}

type Partial = { readonly ms: number; readonly from: RouteStage | null }

/** Shortest way from one first stage; stages are in order of their start, so one pass is enough. */
function cheapestFrom(
  blockCount: number,
  first: RouteStage,
  input: { readonly ordered: readonly RouteStage[]; readonly hopMs: HopCost },
): Route | null {
  const reached = reachable(first, input)
  let route: Route | null = null
  for (const [last, { ms }] of reached) {
    if (last.range.end !== blockCount) continue
    const lapMs = ms + (last === first ? 0 : input.hopMs(last.peer, first.peer))
    if (route === null || lapMs < route.lapMs) route = { stages: chainTo(last, reached), lapMs }
  }
  return route
}

function reachable(
  first: RouteStage,
  input: { readonly ordered: readonly RouteStage[]; readonly hopMs: HopCost },
): ReadonlyMap<RouteStage, Partial> {
  const reached = new Map<RouteStage, Partial>([[first, { ms: first.stepMs, from: null }]])
  const byEnd = new Map<number, RouteStage[]>([[first.range.end, [first]]])
  for (const stage of input.ordered) {
    let best: Partial | null = null
    for (const before of byEnd.get(stage.range.start) ?? []) {
      const ms = (reached.get(before)?.ms ?? Infinity) + input.hopMs(before.peer, stage.peer)
      if (best === null || ms < best.ms) best = { ms: ms, from: before }
    }
    if (best === null) continue
    reached.set(stage, { ms: best.ms + stage.stepMs, from: best.from })
    byEnd.set(stage.range.end, [...(byEnd.get(stage.range.end) ?? []), stage])
  }
  return reached
}

function chainTo(last: RouteStage, reached: ReadonlyMap<RouteStage, Partial>): RouteStage[] {
  const chain: RouteStage[] = []
  for (let at: RouteStage | null = last; at !== null; at = reached.get(at)?.from ?? null)
    chain.unshift(at)
  return chain
}
