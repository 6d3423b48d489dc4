import type { PairId, PeerId } from '../ids.ts'
import type { BlockRange } from '../model/block-range.ts'
import { layersIn, msPerLayer, type PlanDevice } from '../plan/device.ts'
import { cheapestRoute, type Route, type RouteStage } from '../plan/route.ts'
import { uncovered } from '../plan/tiling.ts'
import type { PairState, PeerState, RequestState, RouteEntry, SwarmState } from './state.ts'

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

/** It pledged once and must do so again before it may be given orders. */
export function isAwaited(peer: Pick<PeerState, 'droppedAt' | 'pledge' | 'pledged'>): boolean {
  return peer.droppedAt === null && peer.pledge !== null && !peer.pledged
}

export function pairBetween(state: SwarmState, a: PeerId, b: PeerId): PairState | null {
  for (const pair of state.pairs.values())
    if ((pair.from === a && pair.to === b) || (pair.from === b && pair.to === a)) return pair
  return null
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

/** A new range was never measured, but the device was, as long as its measured range is the present one. */
export function planDevices(state: SwarmState): PlanDevice[] {
  const devices: PlanDevice[] = []
  for (const peer of state.peers.values()) {
    const { pledge } = peer
    if (peer.role !== 'worker' || pledge === null || peer.silence === 'long') continue
    devices.push({
      peer: peer.peer,
      pledgeBytes: Math.min(pledge.memoryBytes, peer.memoryLimit ?? Infinity),
      provider: pledge.provider,
      msPerLayer: measuredMs(state, peer),
      hidden: pledge.hidden,
      usable: peer.setAside === null,
      cached: pledge.cached,
      range: peer.assignment?.range ?? null,
      ready: isReady(peer),
    })
  }
  return devices
}

function measuredMs(state: SwarmState, peer: PeerState): number | null {
  const range = peer.assignment?.range
  if (peer.stepMs === null || !range) return null
  return peer.stepMs / Math.max(1, layersIn(range, state.model.layerCount))
}

/** Ranges that no ready device holds. */
export function missingRanges(state: SwarmState): BlockRange[] {
  const ready = [...state.peers.values()].flatMap((peer) =>
    isReady(peer) && peer.assignment?.range ? [peer.assignment.range] : [],
  )
  return uncovered(state.model.blocks.length, ready)
}

/** Cost of a hop where nothing was measured yet, ms. An open link that was measured is usually cheaper. */
const UNKNOWN_HOP_MS = 6
const PATH_MS = { local: 0, direct: 0.5, turn: 3, relay: 4 } as const
/** Browsers slow hidden tabs down two to three times, and may stop them. */
const HIDDEN_FACTOR = 3
const HIDDEN_MS = 20

/** What a new route of a session takes over from the one that broke. */
export type RouteMemory = {
  /** Stages whose devices have the session in their caches. */
  readonly stages: readonly RouteEntry[]
  /** Devices that the route must do without. */
  readonly shunned: readonly PeerId[]
}

/** What replacing a stage of a session costs: sending and computing again. */
const REPLACED_STAGE_MS = 30
/** A link that closed may need seconds to come back, or a device that nobody hears any more. */
const BROKEN_HOP_MS = 100

/**
 * The cheapest chain of ready devices; with `spread`, devices that already serve sessions cost more; with
 * `memory`, those that did not serve this session.
 */
export function bestRoute(
  state: SwarmState,
  spread: boolean,
  memory: RouteMemory | null = null,
): Route | null {
  const load = spread ? sessionsPerPeer(state) : new Map<PeerId, number>()
  const stages = [...state.peers.values()].flatMap((peer) => {
    const stage = routeStage(state, peer, load.get(peer.peer) ?? 0)
    if (stage === null || memory === null) return stage ?? []
    if (memory.shunned.includes(peer.peer)) return []
    const isNew = !memory.stages.some((former) => former.peer === peer.peer)
    return isNew ? { ...stage, stepMs: stage.stepMs + REPLACED_STAGE_MS } : stage
  })
  const hops = hopTable(state)
  return cheapestRoute(
    state.model.blocks.length,
    stages,
    (from, to) => hops.get(pairKey(from, to)) ?? UNKNOWN_HOP_MS,
  )
}

/** `sessions`: how many it computes already. */
function routeStage(state: SwarmState, peer: PeerState, sessions: number): RouteStage | null {
  const range = peer.assignment?.range
  const { pledge } = peer
  if (!isReady(peer) || !range || pledge === null || pledge.memoryBytes === 0) return null
  const layers = Math.max(1, layersIn(range, state.model.layerCount))
  const ms = peer.stepMs ?? layers * msPerLayer({ msPerLayer: null, provider: pledge.provider })
  const busy = ms * (1 + sessions)
  const stepMs = pledge.hidden ? busy * HIDDEN_FACTOR + HIDDEN_MS : busy
  return { peer: peer.peer, range, stepMs }
}

function hopTable(state: SwarmState): Map<string, number> {
  const table = new Map<string, number>()
  for (const pair of state.pairs.values()) {
    const known = pair.state === 'open' && pair.path !== null
    const ms =
      known && pair.path !== null
        ? PATH_MS[pair.path] + (pair.rttMs ?? 1) / 2
        : pair.state === 'closed' && pair.failures > 0
          ? BROKEN_HOP_MS * pair.failures
          : UNKNOWN_HOP_MS * (1 + pair.failures)
    table.set(pairKey(pair.from, pair.to), ms)
  }
  return table
}

function pairKey(a: PeerId, b: PeerId): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}

function sessionsPerPeer(state: SwarmState): Map<PeerId, number> {
  const counts = new Map<PeerId, number>()
  for (const request of state.requests.values())
    if (isActive(request))
      for (const stage of request.stages) counts.set(stage.peer, (counts.get(stage.peer) ?? 0) + 1)
  return counts
}

/** True when a question can be answered now: every block ready and the chain linked. */
export function isComplete(state: SwarmState): boolean {
  if (state.route === null) return false
  return neighbours(state.route).every(([a, b]) => pairBetween(state, a, b)?.state === 'open')
}
