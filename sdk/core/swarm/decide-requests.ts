import type { ErrorCode, WireError } from '../errors.ts'
import type { PeerId, SessionId } from '../ids.ts'
import {
  REPAIR_MS,
  RETURN_MS,
  SESSION_IDLE_MS,
  SESSION_OPEN_MS,
  SESSION_STALL_MS,
  STAGE_STEP_MS,
} from '../limits.ts'
import { blockCount, describeRange } from '../model/block-range.ts'
import { uncovered } from '../plan/tiling.ts'
import { lengthOf } from '../session/token-list.ts'
import { swarmAdvice } from './advice.ts'
import { createAdmission, makeRoom } from './admission.ts'
import { openMissing } from './decide-pairs.ts'
import { adoptable } from './decide-retained.ts'
import type { Decision } from './events.ts'
import { repairClaims } from './repair-way.ts'
import type { RequestState, RouteEntry } from './request-state.ts'
import type { SwarmState } from './state.ts'
import {
  bestRoute,
  isOver,
  isRouted,
  missingRanges,
  neighbours,
  pairBetween,
  stillServes,
} from './views.ts'

/** Ends requests whose asker is gone, and breaks routes that don't hold: a stage is gone, or a time limit passed. */
export function decideRequests(state: SwarmState, now: number): readonly Decision[] {
  const decisions: Decision[] = []
  for (const request of state.requests.values()) {
    if (isOver(request)) continue
    if (!state.peers.has(request.asker)) {
      decisions.push({ kind: 'request-ended', key: request.key, reason: 'cancelled', error: null })
      continue
    }
    const broken = isRouted(request) ? whyBroken(state, request, now) : null
    if (broken) decisions.push(...breakOff(request, broken))
  }
  return decisions
}

/** Why an answer can't go on, the devices that it counts against, and those of which one may be to blame. */
type Broken = {
  readonly error: WireError
  readonly faulty: readonly PeerId[]
  readonly doubted?: readonly PeerId[]
}

function breakOff(request: RequestState, { error, faulty, doubted = [] }: Broken): Decision[] {
  const reason = `answers broke off here again and again: ${error.message}`
  const strikes = newlyFaulty(request, faulty).map((peer): Decision => ({
    kind: 'struck',
    peer,
    reason,
  }))
  return [...strikes, { kind: 'session-broken', key: request.key, error, faulty, doubted }]
}

/** One answer that nobody can go on with is one fault of each device, however often it is tried. */
export function newlyFaulty(request: RequestState, faulty: readonly PeerId[]): PeerId[] {
  return faulty.filter((peer) => !request.broken?.shunned.includes(peer))
}

function whyBroken(state: SwarmState, request: RequestState, now: number): Broken | null {
  const lost = request.stages.find((stage) => !stillServes(state, stage))
  if (lost) {
    const layers = describeRange(lost.range, state.model.layerCount)
    const name = nameOf(state, lost)
    const message = `${name}, which held ${layers}, left in the middle of the answer`
    return { error: wireError('stage-lost', message), faulty: [] }
  }
  const silent = now - request.progressAt
  if (request.phase === 'opening' && silent > SESSION_OPEN_MS) return late(state, request)
  if (request.phase === 'running' && silent > stallLimitMs(state, request))
    return mute(state, request, now)
  return null
}

/** Who computes may be slow; where nobody does, a frame was lost. Stages that don't beat say neither. */
function stallLimitMs(state: SwarmState, { stages }: RequestState): number {
  const peers = stages.map(({ peer }) => state.peers.get(peer))
  const isIdle = peers.every((peer) => peer?.heardAt != null && !peer.computing)
  return isIdle ? SESSION_STALL_MS : SESSION_IDLE_MS
}

/** Counts against the stages that had all they need: the link to the next one stood, or none was needed. */
function late(state: SwarmState, request: RequestState): Broken {
  const { stages, ready } = request
  const missing = stages.filter((stage) => !ready.some(({ peer }) => peer === stage.peer))
  const names = missing.map((stage) => nameOf(state, stage)).join(', ')
  const message = `not linked and ready within ${SESSION_OPEN_MS / 1_000} s: ${names}`
  const faulty = missing.filter((stage) => !awaitsNext(state, stages, stage))
  return { error: wireError('timeout', message), faulty: faulty.map((stage) => stage.peer) }
}

/** The next stage has not said that the link between them is open. */
function awaitsNext(state: SwarmState, stages: readonly RouteEntry[], stage: RouteEntry): boolean {
  const next = stages[(stages.indexOf(stage) + 1) % stages.length]
  if (next === undefined || next === stage) return false
  return !pairBetween(state, stage.peer, next.peer)?.openEnds.includes(next.peer)
}

/** Counts against the last stage, or the first one that had no part in a lap; not against one that computes. */
function mute(state: SwarmState, request: RequestState, now: number): Broken {
  const seconds = Math.round((now - request.progressAt) / 1_000)
  const error = wireError('timeout', `no token for ${seconds} s`)
  if (stallLimitMs(state, request) === SESSION_STALL_MS) return { error, ...heldUp(request) }
  const unheard = request.answer === null ? -1 : request.stageMs.indexOf(null)
  // -1 = all had a part, or there was no lap yet: the last one owes the token.
  const suspect = request.stages.at(unheard)?.peer
  const isSilent = suspect !== undefined && !computes(state, suspect, now)
  return { error, faulty: isSilent ? [suspect] : [] }
}

/**
 * By what the stages say that they computed: the ends of the link over which rows went and did not come, or the stage that
 * has all it needs, the last one where nobody lacks any.
 */
function heldUp({
  stages,
  positions,
  promptLength,
  answer,
  givenRows,
}: RequestState): Pick<Broken, 'faulty' | 'doubted'> {
  const rows = promptLength + lengthOf(answer)
  const behind = positions.findIndex((own, stage) => own < (positions[stage - 1] ?? rows))
  const own = stages.at(behind)?.peer
  if (own === undefined) return { faulty: [] }
  const before = stages.at(behind - 1)?.peer ?? own
  // Up to the last token at the start of the epoch the first stage has all from the host.
  const isByLink = behind > 0 || (behind === 0 && (positions[0] ?? 0) >= givenRows)
  return isByLink && before !== own ? { faulty: [], doubted: [before, own] } : { faulty: [own] }
}

/** It told of new steps within the time that one step may take: slow, e.g. with a long prompt, not silent. */
function computes(state: SwarmState, peer: PeerId, now: number): boolean {
  const computedAt = state.peers.get(peer)?.computedAt ?? null
  return computedAt !== null && now - computedAt <= STAGE_STEP_MS
}

function wireError(code: ErrorCode, message: string): WireError {
  return { code, message: message.slice(0, 500) }
}

function nameOf(state: SwarmState, stage: RouteEntry): string {
  const name = state.peers.get(stage.peer)?.name ?? ''
  return name === '' ? 'a device' : name
}

/** All stages are linked and ready: the prompt may go. */
export function startSession(state: SwarmState): readonly Decision[] {
  return [...state.requests.values()]
    .filter(
      (request) => request.phase === 'opening' && request.ready.length === request.stages.length,
    )
    .map((request) => ({ kind: 'session-started', key: request.key }))
}

/**
 * The oldest waiting request gets a route when its devices have room, those of which a part was answered first; links that
 * it needs come before. Broken answers that wait for room have theirs first. Where stages keep a session that begins with the same text, it goes on with that.
 */
export function openSession(state: SwarmState, now: number): readonly Decision[] {
  if (state.change?.phase === 'draining') return []
  const queued = [...state.requests.values()].filter((request) => request.phase === 'queued')
  const next = nextOf(queued, now)
  if (!next) return []
  const known = adoptable(state, next)
  const route = bestRoute(state, true, {
    memory: known && { stages: known.former.stages, shunned: [], lastResort: [] },
    admits: createAdmission(state, next, repairClaims(state, now)),
  })
  if (route === null) return withoutRoute(state, next, now)
  const missing = openMissing(state, neighbours(route.stages))
  if (missing.length > 0) return missing
  const stages = route.stages.map(({ peer, range }) => ({ peer, range }))
  return begin(state, { request: next, stages, known })
}

/** A question that waited for as long as a repair may take goes before answers that go on, or these could keep it waiting for good. */
function nextOf(queued: readonly RequestState[], now: number): RequestState | undefined {
  const [oldest] = queued
  if (oldest !== undefined && now - oldest.progressAt > REPAIR_MS) return oldest
  return queued.find(({ answer }) => answer !== null) ?? oldest
}

/** Devices that have no room now, or are on their way, are waited for. */
function withoutRoute(
  state: SwarmState,
  { key, resumed, progressAt }: RequestState,
  now: number,
): readonly Decision[] {
  if (bestRoute(state, false) !== null) return []
  const isExpected = isOnTheWay(state)
  const isPatient = resumed ? now - progressAt <= (isExpected ? REPAIR_MS : RETURN_MS) : isExpected
  if (isPatient) return []
  return [{ kind: 'request-ended', key, reason: 'error', error: incompleteError(state) }]
}

function begin(
  state: SwarmState,
  session: {
    readonly request: RequestState
    readonly stages: readonly RouteEntry[]
    readonly known: ReturnType<typeof adoptable>
  },
): readonly Decision[] {
  const { request, stages, known } = session
  // The counter starts as a session number and only grows within 32 bits.
  const fresh = { session: state.nextSession as SessionId, epoch: 1, valid: 0 }
  const adopted = known && {
    session: known.former.session,
    epoch: known.former.epoch + 1,
    valid: known.rows,
  }
  return [
    ...makeRoom(state, stages, { request, adopted: adopted?.session ?? null }),
    { kind: 'session-opened', key: request.key, stages, ...(adopted ?? fresh) },
  ]
}

/** Devices that lost their connection a moment ago, or still load, would make the ring whole. */
export function isOnTheWay(state: SwarmState): boolean {
  const ordered = [...state.peers.values()].flatMap(({ setAside, assignment }) =>
    setAside === null && assignment?.range && assignment.state !== 'failed'
      ? [assignment.range]
      : [],
  )
  return uncovered(state.model.blocks.length, ordered).length === 0
}

/** Which blocks no device holds, and what to do about it. */
export function incompleteError(state: SwarmState): WireError {
  const advice = swarmAdvice(state)
  if (advice === '') return wireError('ring-incomplete', 'the layers do not form a chain yet')
  const missing = missingRanges(state)
  const what = missing.map((range) => describeRange(range, state.model.layerCount)).join(', ')
  const isOne = missing.reduce((sum, range) => sum + blockCount(range), 0) === 1
  return wireError('ring-incomplete', `${what} ${isOne ? 'has' : 'have'} no worker (${advice})`)
}
