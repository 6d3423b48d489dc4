import type { PeerId } from '../ids.ts'
import { ABSENT_MS, DEAD_MS, PLEDGE_MS, REJOIN_MS } from '../limits.ts'
import { sameRange } from '../model/block-range.ts'
import { planSwarm, type PlannedDevice } from '../plan/assign.ts'
import { decideModel } from './decide-model.ts'
import { decidePairs } from './decide-pairs.ts'
import { decidePieces } from './decide-pieces.ts'
import { repairSessions } from './decide-repair.ts'
import { releaseRetained } from './decide-retained.ts'
import { handOver } from './decide-handover.ts'
import { decideRequests, openSession, startSession } from './decide-requests.ts'
import type { Decision } from './events.ts'
import { hopCosts } from './hops.ts'
import type { PeerState, SwarmState } from './state.ts'
import { bestRoute, drainingOf, isActive, isAwaited, isRouted, planDevices } from './views.ts'

/**
 * What must happen next. The first check that finds something gives its decisions; they are applied and
 * asked for again, until nothing is left. `now` in ms: time limits are checked here and nowhere else.
 */
export function decide(state: SwarmState, now: number): readonly Decision[] {
  for (const check of CHECKS) {
    const decisions = check(state, now)
    if (decisions.length > 0) return decisions
  }
  return []
}

/** In order of urgency: who is gone, what broke, who holds what, who talks to whom, who fetches from whom, what may start. */
const CHECKS: readonly ((state: SwarmState, now: number) => readonly Decision[])[] = [
  forgetLost,
  missSilent,
  decideRequests,
  decideModel,
  assignBlocks,
  chooseRoute,
  decidePairs,
  decidePieces,
  startSession,
  releaseRetained,
  repairSessions,
  handOver,
  openSession,
]

function forgetLost(state: SwarmState, now: number): readonly Decision[] {
  const decisions: Decision[] = []
  for (const { peer, droppedAt, pledgeDueSince, pledge, pledged } of state.peers.values()) {
    if (droppedAt !== null && now - droppedAt > REJOIN_MS)
      decisions.push({ kind: 'peer-forgotten', peer })
    else if (isAwaited({ droppedAt, pledge, pledged }) && now - pledgeDueSince > PLEDGE_MS)
      decisions.push({ kind: 'pledge-expired', peer })
  }
  return decisions
}

function missSilent(state: SwarmState, now: number): readonly Decision[] {
  const decisions: Decision[] = []
  for (const { peer, droppedAt, heardAt, silence } of state.peers.values()) {
    if (droppedAt !== null || heardAt === null) continue
    const ms = now - heardAt
    const next = ms > ABSENT_MS ? 'long' : ms > DEAD_MS ? 'short' : null
    if (next !== null && next !== silence)
      decisions.push({ kind: 'peer-silent', peer, silence: next })
  }
  return decisions
}

function assignBlocks(state: SwarmState): readonly Decision[] {
  if (state.planned === state.topology) return []
  // What each device has stored of a model is known once all have told: then nothing is fetched twice.
  if (state.change?.phase === 'loading' && [...state.peers.values()].some(isAwaited)) return []
  const plan = planSwarm({
    model: state.model,
    devices: planDevices(state),
    minStages: state.minStages,
    hopMs: hopCosts(state),
  })
  const busy = busyPeers(state)
  const orders = plan.assignments
    .filter((planned) => mustOrder(state.peers.get(planned.peer), planned, busy))
    .map(({ peer, range, keep, reason }): Decision => ({
      kind: 'assigned',
      peer,
      range,
      keep,
      reason,
    }))
  return [...orders, { kind: 'planned', plan }]
}

/** A device that computes answers is left to finish them; the end of each brings a new plan. */
function mustOrder(
  peer: PeerState | undefined,
  planned: PlannedDevice,
  busy: ReadonlySet<PeerId>,
): boolean {
  if (!peer || peer.droppedAt !== null || !peer.pledged) return false
  const { assignment } = peer
  // Number 0: the device came back and must be told again.
  if (assignment === null || assignment.number === 0) return true
  if (!sameRange(assignment.range, planned.range)) return !busy.has(peer.peer)
  if (planned.range !== null) return false
  return assignment.reason !== planned.reason || !sameRange(assignment.keep, planned.keep)
}

/** An answer that waits for a new route keeps those only that could hold nothing else: the others may have to move. */
function busyPeers(state: SwarmState): ReadonlySet<PeerId> {
  const peers = [...state.requests.values()].filter(isActive).flatMap((request) => {
    if (!isRouted(request)) return drainingOf(state, request)
    return [...request.stages, ...request.leaving].map(({ peer }) => peer)
  })
  return new Set(peers)
}

function chooseRoute(state: SwarmState): readonly Decision[] {
  if (state.routed === state.links) return []
  const route = bestRoute(state, false)
  const stages = route?.stages.map(({ peer, range }) => ({ peer, range })) ?? null
  return [{ kind: 'routed', route: stages }]
}
