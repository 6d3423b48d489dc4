import type { PeerId } from '../ids.ts'
import { UNKNOWN_HOP_MS } from '../plan/hop-table.ts'
import type { HopCost } from '../plan/route.ts'
import type { PairState, SwarmState } from './state.ts'

/** Besides half the round trip, ms: what a frame costs on the way through. */
const PATH_MS = { local: 0, direct: 0.5, turn: 3, relay: 4 } as const

/** A cost that changed less than this is the same for router and planner. */
const CLEAR_MS = 8
const CLEAR_PART = 0.5

/** What a hop over this link costs, ms; null where that was never measured. */
export function pairHopMs({ path, rttMs }: Pick<PairState, 'path' | 'rttMs'>): number | null {
  return path === null ? null : PATH_MS[path] + (rttMs ?? 1) / 2
}

/** Whether a link turned out clearly nearer or farther than it was thought to be. */
export function isOtherHop(before: PairState, after: PairState): boolean {
  const was = pairHopMs(before) ?? UNKNOWN_HOP_MS
  const now = pairHopMs(after) ?? UNKNOWN_HOP_MS
  return Math.abs(now - was) > Math.max(CLEAR_MS, was * CLEAR_PART)
}

export function pairKey(a: PeerId, b: PeerId): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}

/**
 * The cost of a hop between any two peers: as measured, also on a link that was closed since. A pair that was never linked
 * is no nearer than either of its ends was to the nearest peer that it met. `failureMs`: for each time that a link failed.
 */
export function hopCosts(state: SwarmState, failureMs = UNKNOWN_HOP_MS): HopCost {
  const known = new Map(state.knownHops)
  const failed = new Map<string, number>()
  for (const pair of state.pairs.values()) {
    if (pair.purpose !== 'ring') continue
    const ms = pairHopMs(pair)
    const key = pairKey(pair.from, pair.to)
    if (ms !== null && pair.state === 'open') known.set(key, ms)
    // A link that can't be had is no better than one that nobody tried.
    else if (pair.failures > 0) failed.set(key, UNKNOWN_HOP_MS + failureMs * pair.failures)
  }
  const nearest = nearestOf(known)
  return (from, to) => {
    const key = pairKey(from, to)
    const guess = Math.max(UNKNOWN_HOP_MS, nearest.get(from) ?? 0, nearest.get(to) ?? 0)
    return failed.get(key) ?? known.get(key) ?? guess
  }
}

function nearestOf(known: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const nearest = new Map<string, number>()
  for (const [key, ms] of known)
    for (const peer of key.split(' '))
      nearest.set(peer, Math.min(ms, nearest.get(peer) ?? Infinity))
  return nearest
}

/** What was measured of a link that is closed, kept for the planner. */
export function remembered(state: SwarmState, pair: PairState): SwarmState['knownHops'] {
  const ms = pairHopMs(pair)
  if (ms === null) return state.knownHops
  return new Map(state.knownHops).set(pairKey(pair.from, pair.to), ms)
}

/** Without the links of a peer that is gone. */
export function forgotten(state: SwarmState, peer: PeerId): SwarmState['knownHops'] {
  return new Map([...state.knownHops].filter(([key]) => !key.split(' ').includes(peer)))
}
