import type { PairId, PeerId } from '../ids.ts'
import { sameRange, type BlockRange } from '../model/block-range.ts'
import type { PlanDevice } from '../plan/device.ts'
import { UNKNOWN_HOP_MS } from '../plan/hop-table.ts'
import { withHidden } from '../plan/lap.ts'
import { cheapestRoute, type Route, type RouteStage } from '../plan/route.ts'
import { uncovered } from '../plan/tiling.ts'
import { hopCosts } from './hops.ts'
import { createStepPredictor, loadPerPeer } from './predict.ts'
import type { RequestState, RouteEntry } from './request-state.ts'
import type { PairState, PeerState, SwarmState } from './state.ts'

/** Questions that several parts ask of the state. */

/** A session computes it, or will again. */
export function isActive(request: RequestState): boolean {
  return isRouted(request) || request.phase === 'repairing'
}

/** What its stages say counts. */
export function isRouted(request: RequestState): boolean {
  return request.phase === 'opening' || request.phase === 'running'
}

export function isOver(request: RequestState): boolean {
  return !isActive(request) && request.phase !== 'queued'
}

export function isReady(peer: PeerState): boolean {
  if (peer.droppedAt !== null || peer.silence !== null || peer.setAside !== null) return false
  return peer.assignment?.state === 'ready'
}

/** The stage's device is there and holds what it held. */
export function stillServes(state: SwarmState, { peer: id, range }: RouteEntry): boolean {
  const peer = state.peers.get(id)
  return peer !== undefined && isReady(peer) && sameRange(peer.assignment?.range ?? null, range)
}

/** Its owner paused it, or it is to leave: it takes nothing new. */
export function isDraining({ pledge }: PeerState): boolean {
  return pledge?.memoryBytes === 0
}

/** Devices that take nothing new and have the session in their caches: it may still go on there. */
export function drainingOf(
  state: SwarmState,
  { stages, leaving }: Pick<RequestState, 'stages' | 'leaving'>,
): PeerId[] {
  return [...stages, ...leaving].flatMap(({ peer: id }) => {
    const peer = state.peers.get(id)
    return peer !== undefined && isDraining(peer) ? [id] : []
  })
}

/** It pledged once and must do so again before it may be given orders. */
export function isAwaited(peer: Pick<PeerState, 'droppedAt' | 'pledge' | 'pledged'>): boolean {
  return peer.droppedAt === null && peer.pledge !== null && !peer.pledged
}

/** The link of the ring. */
export function pairBetween(state: SwarmState, a: PeerId, b: PeerId): PairState | null {
  for (const pair of state.pairs.values())
    if (pair.purpose === 'ring' && joins(pair, a, b)) return pair
  return null
}

export function joins(pair: PairState, a: PeerId, b: PeerId): boolean {
  return (pair.from === a && pair.to === b) || (pair.from === b && pair.to === a)
}

export function otherEnd(pair: PairState, peer: PeerId): PeerId {
  return pair.from === peer ? pair.to : pair.from
}

/** The link from one stage of a chain to the next, the last one to the first; null when alone. */
export function nextPair(
  state: SwarmState,
  stages: readonly RouteEntry[],
  index: number,
): PairId | null {
  const own = stages[index]
  const next = stages[(index + 1) % stages.length]
  if (!own || !next || own.peer === next.peer) return null
  return pairBetween(state, own.peer, next.peer)?.pair ?? null
}

/** Neighbours of a chain, each pair once. */
export function neighbours(stages: readonly RouteEntry[]): (readonly [PeerId, PeerId])[] {
  if (stages.length < 2) return []
  const result: (readonly [PeerId, PeerId])[] = []
  for (const [index, stage] of stages.entries()) {
    const next = stages[(index + 1) % stages.length]
    if (next && !(stages.length === 2 && index === 1)) result.push([stage.peer, next.peer])
  }
  return result
}

/** The devices as the planner sees them. */
export function planDevices(state: SwarmState): PlanDevice[] {
  const devices: PlanDevice[] = []
  for (const peer of state.peers.values()) {
    const { pledge } = peer
    if (peer.role !== 'worker' || pledge === null || peer.silence === 'long') continue
    devices.push({
      peer: peer.peer,
      pledgeBytes: Math.min(pledge.memoryBytes, peer.memoryLimit ?? Infinity),
      provider: pledge.provider,
      msPerLayer: peer.speed?.settledMs ?? null,
      hidden: pledge.hidden,
      usable: peer.setAside === null,
      cached: pledge.cached,
      range: peer.assignment?.range ?? null,
      ready: isReady(peer),
      keep: peer.assignment?.keep ?? null,
    })
  }
  return devices
}

/** Ranges that no ready device holds. */
export function missingRanges(state: SwarmState): BlockRange[] {
  const ready = [...state.peers.values()].flatMap((peer) =>
    isReady(peer) && peer.assignment?.range ? [peer.assignment.range] : [],
  )
  return uncovered(state.model.blocks.length, ready)
}

/** What a new route of a session takes over from the one that broke. */
export type RouteMemory = {
  /** Stages whose devices have the session in their caches. */
  readonly stages: readonly RouteEntry[]
  /** Devices that the route must do without. */
  readonly shunned: readonly PeerId[]
  /** Devices that have a part, also while they take nothing new, but only where there is no other way. */
  readonly lastResort: readonly PeerId[]
}

export type RouteLimits = {
  readonly memory?: RouteMemory | null
  admits?(peer: PeerState): boolean
}

/** What replacing a stage of a session costs: sending and computing again. */
const REPLACED_STAGE_MS = 30
/** Of two holders the one is taken at which no link broke in the middle of an answer. */
const DOUBT_MS = 200
/** More than any route without it costs. */
const LAST_RESORT_MS = 1e6
/** In the middle of an answer a link that closed is worse than a new stage: it may need seconds to come back. */
const BROKEN_LINK_MS = 100

/**
 * The cheapest chain of ready devices; with `spread`, devices that already serve sessions cost more; with
 * `memory`, those that did not serve this session. Devices that `admits` refuses have no part.
 */
export function bestRoute(
  state: SwarmState,
  spread: boolean,
  { memory = null, admits = () => true }: RouteLimits = {},
): Route | null {
  const load = spread ? loadPerPeer(state) : new Map<PeerId, number>()
  const step = createStepPredictor(state)
  const stages = [...state.peers.values()].flatMap((peer): RouteStage[] => {
    const range = peer.assignment?.range
    const isLastResort = memory?.lastResort.includes(peer.peer) === true
    if (!range || !isReady(peer) || !admits(peer)) return []
    if (!isLastResort && !takesWork(peer)) return []
    const extraMs =
      replacementMs(memory, peer.peer) +
      DOUBT_MS * peer.doubts +
      (isLastResort ? LAST_RESORT_MS : 0)
    const busy = step(peer, range).ms * (1 + (load.get(peer.peer) ?? 0))
    const stepMs = withHidden(busy, peer.pledge?.hidden === true) + extraMs
    return stepMs < Infinity ? [{ peer: peer.peer, range, stepMs }] : []
  })
  const hopMs = hopCosts(state, memory === null ? UNKNOWN_HOP_MS : BROKEN_LINK_MS)
  return cheapestRoute(state.model.blocks.length, stages, hopMs)
}

function takesWork({ pledge }: PeerState): boolean {
  return pledge !== null && pledge.memoryBytes > 0
}

function replacementMs(memory: RouteMemory | null, peer: PeerId): number {
  if (memory === null) return 0
  const { stages, shunned } = memory
  if (shunned.includes(peer)) return Infinity
  return stages.some((stage) => stage.peer === peer) ? 0 : REPLACED_STAGE_MS
}

/** True when a question can be answered now: every block ready and the chain linked. */
export function isComplete(state: SwarmState): boolean {
  if (state.route === null) return false
  return neighbours(state.route).every(([a, b]) => pairBetween(state, a, b)?.state === 'open')
}
