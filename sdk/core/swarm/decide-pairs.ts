import { PAIR_LINGER_MS, PAIR_OPEN_MS, PAIR_RETRY_MAX_MS, PAIR_RETRY_MS } from '../limits.ts'
import type { PeerId } from '../ids.ts'
import type { Decision } from './events.ts'
import { handoverRoutes } from './handover-routes.ts'
import type { RouteEntry } from './request-state.ts'
import type { PairState, SwarmState } from './state.ts'
import { isActive, joins, neighbours, pairBetween } from './views.ts'

/** Neighbours of the next route and of running sessions are linked ahead of time; failed links are retried. */
export function decidePairs(state: SwarmState, now: number): readonly Decision[] {
  const wanted = wantedPairs(state, now)
  const opened = openMissing(state, wanted)
  if (opened.length > 0) return opened
  const decisions: Decision[] = []
  for (const pair of state.pairs.values()) {
    if (pair.purpose !== 'ring') continue
    const isWanted = wanted.some(([a, b]) => joins(pair, a, b))
    if (!isWanted && now - pair.since > PAIR_LINGER_MS)
      decisions.push({ kind: 'pair-closed', pair: pair.pair, reason: 'no longer neighbours' })
    else if (isWanted && mustRetry(state, pair, now))
      decisions.push({ kind: 'pair-retried', pair: pair.pair })
  }
  return decisions
}

/** The links of one chain that don't exist yet. */
export function openMissing(
  state: SwarmState,
  wanted: readonly (readonly [PeerId, PeerId])[],
): Decision[] {
  const missing = wanted.find(
    ([a, b]) => connected(state, a) && connected(state, b) && pairBetween(state, a, b) === null,
  )
  return missing ? [{ kind: 'pair-opened', from: missing[0], to: missing[1] }] : []
}

function wantedPairs(state: SwarmState, now: number): (readonly [PeerId, PeerId])[] {
  const chains: (readonly RouteEntry[])[] = state.route === null ? [] : [state.route]
  for (const request of state.requests.values()) if (isActive(request)) chains.push(request.stages)
  for (const { stages } of handoverRoutes(state, now)) chains.push(stages)
  return chains.flatMap(neighbours)
}

function mustRetry(state: SwarmState, pair: PairState, now: number): boolean {
  if (!connected(state, pair.from) || !connected(state, pair.to)) return false
  const age = now - pair.since
  if (pair.state === 'opening') return age > PAIR_OPEN_MS
  if (pair.state === 'open') return false
  return age >= retryPause(pair.failures)
}

function retryPause(failures: number): number {
  if (failures === 0) return 0
  return Math.min(PAIR_RETRY_MS * 2 ** (failures - 1), PAIR_RETRY_MAX_MS)
}

function connected(state: SwarmState, peer: PeerId): boolean {
  return state.peers.get(peer)?.droppedAt === null
}
