import { sameRange, type BlockRange } from '../model/block-range.ts'
import type { PlanDevice } from './device.ts'
import { fillGaps, type Placement } from './fill.ts'
import { fits, type PlanContext } from './fit.ts'
import { freshChain } from './fresh.ts'
import { CLEAR_GAIN, improveChain } from './improve.ts'
import { lapMs } from './lap.ts'
import type { Draft } from './reasons.ts'
import { bestTiling } from './tiling.ts'

/** Devices that may be used: what they hold and go on fitting, and those that hold nothing. */
export type Pool = {
  readonly able: readonly PlanDevice[]
  readonly kept: readonly Placement[]
  readonly free: readonly PlanDevice[]
}

/**
 * Closes a ring that is open. A gap goes to newcomers and spares first, then to replicas; only when that
 * leaves gaps and a chain from nothing would not, the swarm is planned anew: nothing is served that could be lost.
 */
export function closeRing(context: PlanContext, pool: Pool): Draft {
  const tiling = bestTiling(
    context.blockCount,
    pool.kept.map((item) => ({ owner: item, range: item.range, cost: tileCost(item.device) })),
  )
  const chain = tiling.tiles.map((tile) => tile.owner)
  const { gaps } = tiling
  const whole = wholeModel(context, pool, gaps)
  if (whole) return whole

  const byFree = fillGaps(context, { gaps, free: pool.free, stages: chain.length })
  if (byFree.gaps.length === 0) {
    const draft = filled(context, { kept: pool.kept, chain }, byFree)
    return chain.length > 0 ? draft : (fresher(context, pool, draft) ?? draft)
  }
  const loose = pool.kept.filter((item) => !chain.includes(item) && spareable(item, pool.kept))
  const rest = pool.kept.filter((item) => !loose.includes(item))
  const movable = [...pool.free, ...loose.map((item) => item.device)]
  const byMoving = fillGaps(context, { gaps, free: movable, stages: chain.length })
  if (byMoving.gaps.length === 0) {
    const stay = loose.filter((item) => byMoving.left.includes(item.device))
    const left = byMoving.left.filter((device) => !stay.some((item) => item.device === device))
    return filled(context, { kept: [...rest, ...stay], chain }, { ...byMoving, left })
  }
  return fromNothing(context, pool.able) ?? filled(context, { kept: pool.kept, chain }, byFree)
}

/** Ranks chains over the same blocks: ready and visible devices first. */
function tileCost(device: PlanDevice): number {
  return (device.ready ? 0 : 1) + (device.hidden ? 2 : 0)
}

/** A replica may leave when everything ready that it holds is ready elsewhere too. */
function spareable(item: Placement, kept: readonly Placement[]): boolean {
  if (!item.device.ready) return true
  for (let block = item.range.start; block < item.range.end; block++) {
    const elsewhere = kept.some(
      (other) =>
        other !== item &&
        other.device.ready &&
        block >= other.range.start &&
        block < other.range.end,
    )
    if (!elsewhere) return false
  }
  return true
}

/** Where one free device can hold everything, splitting would only slow answers down. */
function wholeModel(context: PlanContext, pool: Pool, gaps: readonly BlockRange[]): Draft | null {
  const all = { start: 0, end: context.blockCount }
  if (gaps.some((gap) => sameRange(gap, all))) return null
  const device = pool.free.find((one) => !one.hidden && fits(context, one, all))
  if (!device) return null
  const placement = { device, range: all }
  return {
    placed: [...pool.kept, placement],
    chain: [placement],
    missing: [],
    free: pool.free.filter((one) => one !== device),
    moved: null,
  }
}

function filled(
  context: PlanContext,
  before: { readonly kept: readonly Placement[]; readonly chain: readonly Placement[] },
  fill: ReturnType<typeof fillGaps>,
): Draft {
  const chain = [...before.chain, ...fill.placements].sort((a, b) => a.range.start - b.range.start)
  const draft: Draft = {
    placed: [...before.kept, ...fill.placements],
    chain,
    missing: fill.gaps,
    free: fill.left,
    moved: null,
  }
  return fill.gaps.length > 0 ? draft : quickened(context, draft)
}

/** The gap's fillers were chosen by size; where those left over make a clearly faster ring, they take their place. */
function quickened(context: PlanContext, draft: Draft): Draft {
  const chain = improveChain(context, draft.chain, draft.free)
  if (chain === null) return draft
  const held = draft.placed.filter(({ device }) => device.range !== null)
  const added = chain.filter((stage) => !held.includes(stage))
  const placed = [...held, ...added]
  const isPlaced = (device: PlanDevice): boolean => placed.some((item) => item.device === device)
  const former = draft.placed.map((item) => item.device)
  const free = [...draft.free, ...former].filter((device) => !isPlaced(device))
  return { ...draft, placed, chain, free }
}

/** Where nobody holds a part of the ring yet, one of fewer or faster devices may be had at the same price. */
function fresher(context: PlanContext, pool: Pool, draft: Draft): Draft | null {
  const chain = freshChain(context, pool.free)
  if (chain === null || lapMs(context, chain) > lapMs(context, draft.chain) / CLEAR_GAIN)
    return null
  const isChosen = (device: PlanDevice): boolean => chain.some((stage) => stage.device === device)
  return {
    ...draft,
    placed: [...pool.kept, ...chain],
    chain,
    free: pool.free.filter((device) => !isChosen(device)),
  }
}

function fromNothing(context: PlanContext, able: readonly PlanDevice[]): Draft | null {
  const chain = freshChain(context, able)
  if (chain === null) return null
  return {
    placed: chain,
    chain,
    missing: [],
    free: able.filter((device) => !chain.some((stage) => stage.device === device)),
    moved: 'closed',
  }
}
