import type { PeerId } from '../ids.ts'
import { sameRange, type BlockRange } from '../model/block-range.ts'
import { closeRing, type Pool } from './close-ring.ts'
import type { PlanDevice } from './device.ts'
import { createPlanContext, fits, type PlanContext, type PlanInput } from './fit.ts'
import type { Placement } from './fill.ts'
import { freshChain } from './fresh.ts'
import { fastestChain, keepRing } from './keep-ring.ts'
import { lapMs } from './lap.ts'
import { whyPlaced, whySpare, type Draft } from './reasons.ts'
import { moveReplica, placeReplicas } from './replicas.ts'
import { otherRanges, spansOf, usefulOf } from './spans.ts'
import { keepPieces } from './spares.ts'

export type PlannedDevice = {
  readonly peer: PeerId
  /** null = spare: holds nothing. */
  readonly range: BlockRange | null
  /** As a spare: what it keeps stored, not loaded. */
  readonly keep: BlockRange | null
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
  /** Predicted for the chain once it is ready; null while blocks are missing. */
  readonly lapMs: number | null
}

/**
 * Who holds which blocks. An open ring is closed (`closeRing`), a closed one kept or made clearly faster (`keepRing`). What
 * neither needs becomes a replica of the weakest span; what fits no span, or would be one copy too many, a spare that
 * keeps pieces of the weakest span.
 *
 * Laws: no device over its pledge; no move takes a stage away from the ready ring; planning again changes nothing
 * once its moves are made, also when speeds differ by noise, so a serving swarm isn't reshuffled.
 */
export function planSwarm(input: PlanInput): SwarmPlan {
  const context = createPlanContext(input)
  const pool = poolOf(context, input.devices)
  const draft = withReplicas(context, pool)
  const placements = new Map(draft.placed.map((item) => [item.device, item]))
  const spares = draft.free.filter((device) => !placements.has(device))
  const spans = spansOf(rangesOf(draft.chain), draft.placed)
  const keeps = keepPieces(context, spans, spares)
  return {
    assignments: input.devices.map((device) => {
      const placement = placements.get(device)
      const { peer } = device
      if (placement) {
        const reason = whyPlaced(context, draft, placement)
        return { peer, range: placement.range, keep: null, reason }
      }
      const reason = whySpare(context, draft, { device, keeps })
      return { peer, range: null, keep: keeps.get(peer) ?? null, reason }
    }),
    chain: rangesOf(draft.chain),
    missing: draft.missing,
    lapMs: draft.missing.length > 0 ? null : lapMs(context, draft.chain),
  }
}

function poolOf(context: PlanContext, devices: readonly PlanDevice[]): Pool {
  const able = devices.filter((device) => device.usable && device.pledgeBytes > 0)
  const kept = able.flatMap((device) =>
    device.range !== null && fits(context, device, device.range)
      ? [{ device, range: device.range }]
      : [],
  )
  const holders = new Set(kept.map((item) => item.device))
  return { able, kept, free: able.filter((device) => !holders.has(device)) }
}

function withReplicas(context: PlanContext, pool: Pool): Draft {
  const chain = fastestChain(context, pool.kept)
  if (chain === null) {
    const draft = closeRing(context, pool)
    return draft.missing.length > 0 ? withCopies(context, draft) : replicated(context, draft, NONE)
  }
  const { draft, locked } = keepRing(context, pool, chain)
  return replicated(context, draft, locked)
}

const NONE: ReadonlySet<PlanDevice> = new Set()

/** An open ring: who can fill no gap is a copy of what there is. */
function withCopies(context: PlanContext, draft: Draft): Draft {
  const { placed, free } = draft
  const spans = spansOf(rangesOf(draft.chain), placed)
  const { placements } = placeReplicas(context, { chain: null, spans, others: [], free })
  return { ...draft, placed: [...placed, ...placements] }
}

/** A closed ring: replicas, further rings, and one move to a span that has clearly fewer holders. */
function replicated(context: PlanContext, draft: Draft, locked: ReadonlySet<PlanDevice>): Draft {
  const { placed, strays } = withoutStrays(context, draft, locked)
  const free = [...draft.free, ...strays.map((item) => item.device)]
  const spans = spansOf(rangesOf(draft.chain), placed)
  const others = spansOf(otherRanges(spans, usefulOf(context.blockCount, placed)), placed)
  const replicas = placeReplicas(context, { chain: draft.chain, spans, others, free })
  const isLeft = (device: PlanDevice): boolean =>
    !replicas.placements.some((item) => item.device === device)
  // Those that fit no span of the ring may make one of their own.
  const fitsNone = (device: PlanDevice): boolean =>
    isLeft(device) && !spans.some((span) => fits(context, device, span.range))
  const second = freshChain(context, free.filter(fitsNone)) ?? []
  const isIdle = (device: PlanDevice): boolean =>
    isLeft(device) && !second.some((stage) => stage.device === device)
  const stay = strays.filter((item) => isIdle(item.device))
  const all = [...placed, ...replicas.placements, ...second, ...stay]
  const chosen = new Set(draft.chain.map((stage) => stage.device))
  const mayMove = (device: PlanDevice): boolean =>
    !locked.has(device) && !chosen.has(device) && !isKeeper(all, device)
  const move = moveReplica(context, replicas.spans, mayMove)
  return {
    ...draft,
    free,
    placed: move === null ? all : all.map((item) => (item.device === move.device ? move : item)),
  }
}

/** Holders that are part of no whole chain, e.g. of a ring that was cut elsewhere, are free for something useful. */
function withoutStrays(
  context: PlanContext,
  draft: Draft,
  locked: ReadonlySet<PlanDevice>,
): { readonly placed: readonly Placement[]; readonly strays: readonly Placement[] } {
  const useful = new Set(usefulOf(context.blockCount, draft.placed))
  const stays = (item: Placement): boolean => useful.has(item) || locked.has(item.device)
  return {
    placed: draft.placed.filter(stays),
    strays: draft.placed.filter((item) => !stays(item)),
  }
}

/** Of the holders of one range the first ready one stays. */
function isKeeper(placed: readonly Placement[], device: PlanDevice): boolean {
  const own = placed.find((item) => item.device === device)
  const same = placed.filter((item) => own && sameRange(item.range, own.range))
  const keeper = same.find((item) => item.device.ready && !item.device.hidden) ?? same[0]
  return keeper?.device === device
}

function rangesOf(chain: readonly Placement[]): BlockRange[] {
  return chain.map((stage) => stage.range)
}
