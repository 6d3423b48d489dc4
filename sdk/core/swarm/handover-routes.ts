import type { PeerId } from '../ids.ts'
import { HANDOVER_HIDDEN_MS, HANDOVER_PAUSE_MS } from '../limits.ts'
import { uncovered } from '../plan/tiling.ts'
import { lengthOf } from '../session/token-list.ts'
import { createAdmission } from './admission.ts'
import { answerEnd } from './answer-end.ts'
import type { RequestState, RouteEntry } from './request-state.ts'
import type { PeerState, SwarmState } from './state.ts'
import { bestRoute, isDraining, isReady } from './views.ts'

/** An answer that had better go on elsewhere, and where. */
export type Handover = { readonly request: RequestState; readonly stages: readonly RouteEntry[] }

/** An answer with fewer tokens left ends where it is: a move takes about as long. */
const TOKENS_WORTH = 4

/**
 * Routes for running answers of which a stage is on a device that drains, or whose page is out of sight for a while: with
 * fewer such devices than now, and nobody new who is out of sight, doubtful or full. Each may need links first.
 */
export function handoverRoutes(state: SwarmState, now: number): readonly Handover[] {
  const leaving = whoLeaves(state, now)
  if (leaving.size === 0) return []
  return [...state.requests.values()].flatMap((request) => {
    if (!mayMove(state, request, { leaving, now })) return []
    const stages = routeAround(state, request, leaving)
    return stages === null ? [] : [{ request, stages }]
  })
}

/** Who drains, which a device does only once, and who is out of sight, from where a page may come back. */
type Leave = 'draining' | 'hidden'

function whoLeaves(state: SwarmState, now: number): ReadonlyMap<PeerId, Leave> {
  const leaving = new Map<PeerId, Leave>()
  for (const peer of state.peers.values()) {
    const { hiddenSince } = peer
    if (isDraining(peer)) leaving.set(peer.peer, 'draining')
    else if (hiddenSince !== null && now - hiddenSince >= HANDOVER_HIDDEN_MS)
      leaving.set(peer.peer, 'hidden')
  }
  return leaving
}

function mayMove(
  state: SwarmState,
  request: RequestState,
  { leaving, now }: { readonly leaving: ReadonlyMap<PeerId, Leave>; readonly now: number },
): boolean {
  const { phase, broken, moved, answer, maxTokens, repairs } = request
  if (phase !== 'running' || broken !== null) return false
  const reasons = request.stages.map(({ peer }) => leaving.get(peer))
  if (reasons.every((reason) => reason === undefined)) return false
  const left = maxTokens - lengthOf(answer)
  if (answerEnd(state, request) !== null || left <= TOKENS_WORTH) return false
  if (moved === null) return true
  if (moved.answered === lengthOf(answer)) return false
  const isUrgent = reasons.includes('draining') && moved.repairs === repairs
  return isUrgent || now - moved.at >= HANDOVER_PAUSE_MS
}

function routeAround(
  state: SwarmState,
  request: RequestState,
  leaving: ReadonlyMap<PeerId, Leave>,
): readonly RouteEntry[] | null {
  const isOwn = ({ peer }: PeerState): boolean =>
    request.stages.some((stage) => stage.peer === peer)
  const isFit = (peer: PeerState): boolean => isOwn(peer) || (isReady(peer) && isSound(peer))
  if (!isPossible(state, request, { leaving, isFit })) return null
  // As if it did not run yet: it is no load for itself.
  const requests = new Map(state.requests)
  requests.delete(request.key)
  const others = { ...state, requests }
  const admits = createAdmission(others, request)
  const lastResort = leaversOf(request.stages, leaving)
  const route = bestRoute(others, true, {
    memory: { stages: request.stages, shunned: [], lastResort },
    admits: (peer) => isOwn(peer) || (isFit(peer) && admits(peer)),
  })
  if (route === null) return null
  const isBetter = leaversOf(route.stages, leaving).length < lastResort.length
  return isBetter ? route.stages.map(({ peer, range }) => ({ peer, range })) : null
}

function leaversOf(
  stages: readonly RouteEntry[],
  leaving: ReadonlyMap<PeerId, Leave>,
): readonly PeerId[] {
  return stages.map(({ peer }) => peer).filter((peer) => leaving.has(peer))
}

/** A move is a matter of choice: nobody new at whom anything went wrong lately. */
function isSound({ pledge, doubts, strikes }: PeerState): boolean {
  return pledge !== null && !pledge.hidden && pledge.memoryBytes > 0 && doubts + strikes === 0
}

/** Whether one of those who leave could be done without; asked with every event, so that routes are sought only then. */
function isPossible(
  { peers, model }: SwarmState,
  { stages }: RequestState,
  {
    leaving,
    isFit,
  }: {
    readonly leaving: ReadonlyMap<PeerId, Leave>
    readonly isFit: (peer: PeerState) => boolean
  },
): boolean {
  const fit = [...peers.values()].filter(isFit)
  return leaversOf(stages, leaving).some((leaver) => {
    const ranges = fit.flatMap(({ peer, assignment }) =>
      peer !== leaver && assignment?.range ? [assignment.range] : [],
    )
    return uncovered(model.blocks.length, ranges).length === 0
  })
}
