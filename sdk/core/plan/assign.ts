import type { PeerId } from '../ids.ts'
import { sameRange, describeRange, type BlockRange } from '../model/block-range.ts'
import type { PlanDevice, PlanModel } from './device.ts'
import { fillGaps, type Placement } from './fill.ts'
import { createPlanContext, fits, longestFrom, type PlanContext } from './fit.ts'
import { freshChain } from './fresh.ts'
import { moveReplica, placeReplicas, spansOf } from './replicas.ts'
import { bestTiling } from './tiling.ts'

export type PlannedDevice = {
  readonly peer: PeerId
  /** null = spare: holds nothing. */
  readonly range: BlockRange | null
  /** Why, for people. */
  readonly reason: string
}

export type SwarmPlan = {
  /** One for each device, in the order of the input. */
  readonly assignments: readonly PlannedDevice[]
  /** The ranges that make the chain, in order. */
  readonly chain: readonly BlockRange[]
  /** Runs of blocks that no device can be given. */
  readonly missing: readonly BlockRange[]
}

/** Placements with their reasons while a plan is made. */
type Draft = {
  readonly placed: readonly Placement[]
  readonly chain: readonly BlockRange[]
  readonly missing: readonly BlockRange[]
  readonly free: readonly PlanDevice[]
  readonly moved: boolean
}

/**
 * Who holds which blocks. Devices stay where they are unless a gap needs them; a gap goes to newcomers and
 * spares first, then to replicas; only when that leaves gaps and a chain from nothing would not, the
 * swarm is planned anew. What no gap needs becomes a replica of the weakest span.
 *
 * Laws: no device over its pledge; no move takes the last ready copy of a block away from a complete chain;
 * planning twice changes nothing the second time, so a serving swarm isn't reshuffled.
 */
export function planSwarm(input: {
  readonly model: PlanModel
  readonly devices: readonly PlanDevice[]
  readonly minStages: number
}): SwarmPlan {
  const context = createPlanContext(input.model, input.minStages)
  const able = input.devices.filter((device) => device.usable && device.pledgeBytes > 0)
  const kept = able.flatMap((device) =>
    device.range !== null && fits(context, device, device.range)
      ? [{ device, range: device.range }]
      : [],
  )
  const free = able.filter((device) => !kept.some((item) => item.device === device))
  const draft = withReplicas(context, complete(context, { able, kept, free }))
  return {
    assignments: input.devices.map((device) => describe(context, draft, device)),
    chain: draft.chain,
    missing: draft.missing,
  }
}

type Pool = {
  readonly able: readonly PlanDevice[]
  readonly kept: readonly Placement[]
  readonly free: readonly PlanDevice[]
}

function complete(context: PlanContext, pool: Pool): Draft {
  const tiling = bestTiling(
    context.blockCount,
    pool.kept.map((item) => ({ owner: item, range: item.range, cost: tileCost(item.device) })),
  )
  const chain = tiling.tiles.map((tile) => tile.owner)
  if (tiling.gaps.length === 0)
    return { ...settled(pool.kept, chain), missing: [], free: pool.free, moved: false }
  const whole = wholeModel(context, pool, tiling.gaps)
  if (whole) return whole

  const gaps = tiling.gaps
  const byFree = fillGaps(context, { gaps, free: pool.free, stages: chain.length })
  if (byFree.gaps.length === 0) return filled(pool.kept, chain, byFree)
  const loose = pool.kept.filter((item) => !chain.includes(item) && spareable(item, pool.kept))
  const rest = pool.kept.filter((item) => !loose.includes(item))
  const movable = [...pool.free, ...loose.map((item) => item.device)]
  const byMoving = fillGaps(context, { gaps, free: movable, stages: chain.length })
  if (byMoving.gaps.length === 0) {
    const stay = loose.filter((item) => byMoving.left.includes(item.device))
    const left = byMoving.left.filter((device) => !stay.some((item) => item.device === device))
    return filled([...rest, ...stay], chain, { ...byMoving, left })
  }
  return fromNothing(context, pool.able) ?? filled(pool.kept, chain, byFree)
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
  return {
    placed: [...pool.kept, { device, range: all }],
    chain: [all],
    missing: [],
    free: pool.free.filter((one) => one !== device),
    moved: false,
  }
}

function settled(
  kept: readonly Placement[],
  chain: readonly Placement[],
): Pick<Draft, 'placed' | 'chain'> {
  return { placed: kept, chain: chain.map((item) => item.range) }
}

function filled(
  kept: readonly Placement[],
  chain: readonly Placement[],
  fill: ReturnType<typeof fillGaps>,
): Draft {
  const ranges = [...chain, ...fill.placements].map((item) => item.range)
  return {
    placed: [...kept, ...fill.placements],
    chain: ranges.sort((a, b) => a.start - b.start),
    missing: fill.gaps,
    free: fill.left,
    moved: false,
  }
}

function fromNothing(context: PlanContext, able: readonly PlanDevice[]): Draft | null {
  const chain = freshChain(context, able)
  if (chain === null) return null
  return {
    placed: chain,
    chain: chain.map((stage) => stage.range),
    missing: [],
    free: able.filter((device) => !chain.some((stage) => stage.device === device)),
    moved: true,
  }
}

function withReplicas(context: PlanContext, draft: Draft): Draft {
  const spans = spansOf(draft.chain, draft.placed)
  const replicas = placeReplicas(context, spans, draft.free)
  const placed = [...draft.placed, ...replicas.placements]
  const free = draft.free.filter(
    (device) => !replicas.placements.some((item) => item.device === device),
  )
  const move =
    draft.missing.length === 0 ? moveReplica(context, replicas.spans, notFirst(placed)) : null
  if (move === null) return { ...draft, placed, free }
  return {
    ...draft,
    placed: placed.map((item) => (item.device === move.device ? move : item)),
    free,
  }
}

/** Of the holders of one range the first ready one stays. */
function notFirst(placed: readonly Placement[]): (device: PlanDevice) => boolean {
  return (device) => {
    const own = placed.find((item) => item.device === device)
    const same = placed.filter((item) => own && sameRange(item.range, own.range))
    const keeper = same.find((item) => item.device.ready && !item.device.hidden) ?? same[0]
    return keeper?.device !== device
  }
}

function describe(context: PlanContext, draft: Draft, device: PlanDevice): PlannedDevice {
  const { peer } = device
  const placement = draft.placed.find((item) => item.device === device)
  if (!placement) return { peer, range: null, reason: whySpare(context, draft, device) }
  const { range } = placement
  const words = describeRange(range, context.model.layerCount)
  const holders = draft.placed.filter((item) => sameRange(item.range, range)).length
  if (sameRange(device.range, range)) return { peer, range, reason: `holds ${words}` }
  if (holders > 1) return { peer, range, reason: `second copy of the weakest span: ${words}` }
  if (draft.moved && device.range)
    return { peer, range, reason: `moved to close the ring: ${words}` }
  return { peer, range, reason: `newcomer fills ${words}` }
}

function whySpare(context: PlanContext, draft: Draft, device: PlanDevice): string {
  if (device.pledgeBytes === 0) return 'paused: nothing is pledged'
  if (!device.usable) return 'set aside after a failure'
  const wanted = draft.missing.length > 0 ? draft.missing : draft.chain
  const fitsSome = wanted.some(
    (range) =>
      longestFrom(context, device, range.start, {
        limit: range.end,
        layers: context.maxLayers,
      }) !== null,
  )
  if (fitsSome) return 'spare: no span fits the pledge as a whole'
  const start = wanted[0]?.start ?? 0
  const needed = context.sizes.bytes(device.provider, { start, end: start + 1 })
  return `spare: the pledge is too small, one block takes ${megabytes(needed)}`
}

function megabytes(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${Math.ceil(bytes / 1e6)} MB`
}
