import type { PeerId, SessionId } from '../ids.ts'
import { KV_STEP_ROWS, RETAINED_PER_STAGE, SESSIONS_AT_ONCE } from '../limits.ts'
import { sameRange } from '../model/block-range.ts'
import { kvBytesPerToken } from '../model/manifest.ts'
import { layersIn } from '../plan/device.ts'
import { weightBytes } from '../plan/memory.ts'
import type { Decision } from './events.ts'
import type { Leaving, RequestState, RouteEntry } from './request-state.ts'
import type { PeerState, SwarmState } from './state.ts'
import { isActive, isDraining } from './views.ts'

/** What a broken answer would take as soon as there is room: nobody who comes later may take it before. */
export type Claim = { readonly request: RequestState; readonly stages: readonly RouteEntry[] }

type Use = { readonly sessions: number; readonly rows: number }
const NONE: Use = { sessions: 0, rows: 0 }

/**
 * Whether a device may compute this answer beside those that come before it, within its pledge. A device that holds the
 * answer's caches already has them in its count, and no claim is older than that.
 */
export function createAdmission(
  state: SwarmState,
  request: RequestState,
  claims: readonly Claim[] = [],
): (peer: PeerState) => boolean {
  const used = new Map<PeerId, Use>()
  const claimed = new Map<PeerId, Use>()
  for (const other of othersBefore(state, request))
    for (const { peer } of heldBy(state, other)) add(used, peer, rowsOf(state, other))
  for (const claim of claims) {
    const held = heldBy(state, claim.request)
    for (const { peer } of claim.stages)
      if (!isOn(held, peer)) add(claimed, peer, rowsOf(state, claim.request))
  }
  const own = heldBy(state, request)
  return (peer) => {
    // Who drains keeps what it has until it leaves.
    if (isDraining(peer)) return isOn(own, peer.peer)
    const before = used.get(peer.peer) ?? NONE
    const later = isOn(own, peer.peer) ? NONE : (claimed.get(peer.peer) ?? NONE)
    const sessions = before.sessions + later.sessions
    // The plan leaves room for whole contexts: the first one always fits.
    if (sessions === 0) return true
    const rows = before.rows + later.rows + rowsOf(state, request)
    return sessions < SESSIONS_AT_ONCE && rows <= roomRows(state, peer)
  }
}

function add(uses: Map<PeerId, Use>, peer: PeerId, more: number): void {
  const { sessions, rows } = uses.get(peer) ?? NONE
  uses.set(peer, { sessions: sessions + 1, rows: rows + more })
}

/** Rows of cache that a session may grow to: what it was asked for, in whole steps. */
export function rowsOf(
  state: SwarmState,
  { promptLength, maxTokens }: Pick<RequestState, 'promptLength' | 'maxTokens'>,
): number {
  return wholeSteps(state, promptLength + maxTokens)
}

function wholeSteps({ model }: SwarmState, rows: number): number {
  return Math.min(Math.ceil(rows / KV_STEP_ROWS) * KV_STEP_ROWS, model.contextLength)
}

/** Rows of cache that a device has room for beside its weights, in all its sessions together. */
function roomRows({ model }: SwarmState, { assignment, pledge, memoryLimit }: PeerState): number {
  const range = assignment?.range
  if (!range || pledge === null) return 0
  const blocks = model.blocks.slice(range.start, range.end)
  const weights = blocks.reduce((sum, block) => sum + weightBytes(model, pledge.provider, block), 0)
  const rowBytes = kvBytesPerToken(model) * layersIn(range, model.layerCount)
  if (rowBytes === 0) return Infinity
  return (Math.min(pledge.memoryBytes, memoryLimit ?? Infinity) - weights) / rowBytes
}

/** Devices that have the caches of an answer: one that was given other blocks meanwhile has none of it any more. */
export function heldBy(
  state: SwarmState,
  request: RequestState,
): readonly (RouteEntry | Leaving)[] {
  return [...request.stages, ...request.leaving].filter(
    ({ peer, range }) =>
      !request.freed.includes(peer) &&
      sameRange(state.peers.get(peer)?.assignment?.range ?? null, range),
  )
}

/** Answers without a route, the one that broke first before the others. */
export function inRepair({ requests }: SwarmState): RequestState[] {
  const since = ({ broken }: RequestState): number => broken?.since ?? 0
  return [...requests.values()]
    .filter(({ phase }) => phase === 'repairing')
    .sort((a, b) => since(a) - since(b))
}

/** Broken answers whose turn comes after this one; of those that aren't broken it is nobody. */
function othersBehind(state: SwarmState, { key }: RequestState): RequestState[] {
  const broken = inRepair(state)
  const index = broken.findIndex((one) => one.key === key)
  return index < 0 ? [] : broken.slice(index + 1)
}

function othersBefore(state: SwarmState, request: RequestState): RequestState[] {
  const behind = othersBehind(state, request)
  return [...state.requests.values()].filter(
    (other) => isActive(other) && other.key !== request.key && !behind.includes(other),
  )
}

/**
 * What must go before an answer may begin on these stages, so that each keeps to its pledge: kept sessions, the oldest
 * first, and caches of broken answers that wait for their turn behind it.
 */
export function makeRoom(
  state: SwarmState,
  stages: readonly RouteEntry[],
  { request, adopted }: { readonly request: RequestState; readonly adopted: SessionId | null },
): Decision[] {
  const released = new Set<SessionId>()
  const freed: Decision[] = []
  for (const { peer: id } of stages) {
    const peer = state.peers.get(id)
    if (!peer || isDraining(peer)) continue
    const holders = (of: readonly RequestState[]): RequestState[] =>
      of.filter((other) => isOn(heldBy(state, other), id))
    const before = holders(othersBefore(state, request))
    let left = roomRows(state, peer) - [request, ...before].reduce(addRows, 0)
    let places = SESSIONS_AT_ONCE - 1 - before.length
    for (const other of holders(othersBehind(state, request))) {
      const rows = rowsOf(state, other)
      if (rows > left || places <= 0) freed.push({ kind: 'rows-freed', key: other.key, peer: id })
      else [left, places] = [left - rows, places - 1]
    }
    const kept = [...state.retained.values()].filter(
      (former) => former.session !== adopted && isOn(former.stages, id),
    )
    kept.reverse().forEach((former, index) => {
      left -= wholeSteps(state, former.text.length)
      if (left < 0 || index >= RETAINED_PER_STAGE) released.add(former.session)
    })
  }
  return [
    ...[...released].map((session): Decision => ({ kind: 'session-released', session })),
    ...freed,
  ]

  function addRows(sum: number, one: RequestState): number {
    return sum + rowsOf(state, one)
  }
}

function isOn(stages: readonly RouteEntry[], peer: PeerId): boolean {
  return stages.some((stage) => stage.peer === peer)
}
