import type { PeerId, SessionId } from '../ids.ts'
import { KV_STEP_ROWS, RETAINED_PER_STAGE, SESSIONS_AT_ONCE } from '../limits.ts'
import { kvBytesPerToken } from '../model/manifest.ts'
import { layersIn } from '../plan/device.ts'
import { weightBytes } from '../plan/memory.ts'
import type { RequestState, Retained, RouteEntry } from './request-state.ts'
import type { PeerState, SwarmState } from './state.ts'
import { isActive } from './views.ts'

/** Whether a device may take one more session of so many rows beside those that it computes, within its pledge. */
export type Admits = (peer: PeerState, rows: number) => boolean

export function createAdmission(state: SwarmState): Admits {
  const used = new Map<PeerId, { sessions: number; rows: number }>()
  for (const request of state.requests.values()) {
    if (!isActive(request)) continue
    for (const { peer } of [...request.stages, ...request.leaving]) {
      const { sessions, rows } = used.get(peer) ?? { sessions: 0, rows: 0 }
      used.set(peer, { sessions: sessions + 1, rows: rows + rowsOf(state, request) })
    }
  }
  return (peer, rows) => {
    const own = used.get(peer.peer)
    // The plan leaves room for whole contexts: the first one always fits.
    if (own === undefined) return true
    return own.sessions < SESSIONS_AT_ONCE && own.rows + rows <= roomRows(state, peer)
  }
}

/** Rows of cache that a session may grow to: what it was asked for, in whole steps. */
export function rowsOf(
  state: SwarmState,
  { promptLength, maxTokens }: Pick<RequestState, 'promptLength' | 'maxTokens'>,
): number {
  const whole = Math.ceil((promptLength + maxTokens) / KV_STEP_ROWS) * KV_STEP_ROWS
  return Math.min(whole, state.model.contextLength)
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

/** Kept sessions, the oldest first, that must go before one of so many rows may begin on these stages. */
export function crowdedOut(
  state: SwarmState,
  stages: readonly RouteEntry[],
  { rows, adopted }: { readonly rows: number; readonly adopted: SessionId | null },
): SessionId[] {
  const gone = new Set<SessionId>()
  const active = [...state.requests.values()].filter(isActive)
  for (const { peer: id } of stages) {
    const peer = state.peers.get(id)
    if (!peer) continue
    const kept = [...state.retained.values()].filter(
      (former) => former.session !== adopted && holds(former.stages, id),
    )
    const own = active.filter(({ stages, leaving }) => holds([...stages, ...leaving], id))
    const activeRows = own.reduce((sum, request) => sum + rowsOf(state, request), rows)
    let left = roomRows(state, peer) - activeRows
    const newest = kept.toReversed()
    newest.forEach((former, index) => {
      left -= former.text.length
      if (left < 0 || index >= RETAINED_PER_STAGE) gone.add(former.session)
    })
  }
  return [...gone]
}

function holds(stages: Retained['stages'], peer: PeerId): boolean {
  return stages.some((stage) => stage.peer === peer)
}
