import type { PlanDevice } from './device.ts'
import type { Placement } from './fill.ts'
import type { PlanContext } from './fit.ts'
import { freshChain } from './fresh.ts'
import { CLEAR_GAIN, fasterChain, improveChain } from './improve.ts'
import { lapMs, stepMs } from './lap.ts'
import type { Pool } from './close-ring.ts'
import type { Draft } from './reasons.ts'
import { cheapestRoute } from './route.ts'

/** The fastest chain of placements as they are; null when they don't cover the model. */
export function fastestChain(
  context: PlanContext,
  placed: readonly Placement[],
): readonly Placement[] | null {
  const byPeer = new Map(placed.map((item) => [item.device.peer, item]))
  const stages = placed.map(({ device, range }) => ({
    peer: device.peer,
    range,
    stepMs: stepMs(context, device, range),
  }))
  const route = cheapestRoute(context.blockCount, stages, (from, to) => {
    const [a, b] = [byPeer.get(from), byPeer.get(to)]
    return a && b ? context.hopMs(a.device, b.device) : 0
  })
  return route?.stages.flatMap(({ peer }) => byPeer.get(peer) ?? []) ?? null
}

/**
 * A ring that is closed, `chain`, stays as it is unless devices that it doesn't need make a clearly faster one. The
 * ready ring goes on until the new one is ready: its devices stay where they are, and are free for other things
 * only when a later plan finds the new ring ready. So no move uncovers a block.
 */
export function keepRing(
  context: PlanContext,
  pool: Pool,
  chain: readonly Placement[],
): { readonly draft: Draft; readonly locked: ReadonlySet<PlanDevice> } {
  const ready = pool.kept.filter((item) => item.device.ready)
  const serving = fastestChain(context, ready) ?? []
  const holders = lastHolders(ready, [...serving, ...chain.filter(({ device }) => device.ready)])
  const locked = new Set([...serving, ...chain, ...holders].map((stage) => stage.device))
  const loose = pool.able.filter((device) => !locked.has(device))
  const better = betterChain(context, chain, loose)
  if (better === null) {
    const { kept, free } = pool
    return { draft: { placed: kept, chain, missing: [], free, moved: null }, locked }
  }
  const added = better.filter((stage) => !chain.includes(stage))
  const moves = (device: PlanDevice): boolean => added.some((stage) => stage.device === device)
  const draft: Draft = {
    placed: [...pool.kept.filter((item) => !moves(item.device)), ...added],
    chain: better,
    missing: [],
    free: pool.free.filter((device) => !moves(device)),
    moved: 'faster',
  }
  return { draft, locked: new Set([...locked, ...better.map((stage) => stage.device)]) }
}

/** Ready devices that must stay, besides those that stay anyway, so that no block which is ready somewhere stops being so. */
function lastHolders(
  ready: readonly Placement[],
  staying: readonly Placement[],
): readonly Placement[] {
  const held = new Set(staying.flatMap(blocksOf))
  return ready.filter((item) => {
    const blocks = blocksOf(item)
    const isLast = blocks.some((block) => !held.has(block))
    if (isLast) for (const block of blocks) held.add(block)
    return isLast
  })
}

function blocksOf({ range }: Placement): number[] {
  return Array.from({ length: range.end - range.start }, (_, index) => range.start + index)
}

function betterChain(
  context: PlanContext,
  chain: readonly Placement[],
  loose: readonly PlanDevice[],
): readonly Placement[] | null {
  if (loose.length === 0) return null
  const limit = lapMs(context, chain) / CLEAR_GAIN
  const fresh = freshChain(context, loose)
  const beside = fresh !== null && lapMs(context, fresh) <= limit ? fresh : null
  return fasterChain(context, improveChain(context, chain, loose), beside)
}
