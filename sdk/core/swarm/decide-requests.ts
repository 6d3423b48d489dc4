import type { ErrorCode, WireError } from '../errors.ts'
import type { SessionId } from '../ids.ts'
import { SESSION_IDLE_MS, SESSION_OPEN_MS, SESSIONS_AT_ONCE } from '../limits.ts'
import { describeRange, sameRange } from '../model/block-range.ts'
import { swarmAdvice } from './advice.ts'
import { openMissing } from './decide-pairs.ts'
import type { Decision } from './events.ts'
import type { RequestState, RouteEntry, SwarmState } from './state.ts'
import { bestRoute, isActive, isOver, isReady, neighbours } from './views.ts'

/** Ends requests that can't go on: the asker or a stage is gone, or a time limit passed. */
export function decideRequests(state: SwarmState, now: number): readonly Decision[] {
  const decisions: Decision[] = []
  for (const request of state.requests.values()) {
    if (isOver(request)) continue
    if (!state.peers.has(request.asker)) {
      decisions.push({ kind: 'request-ended', key: request.key, reason: 'cancelled', error: null })
      continue
    }
    const error = isActive(request) ? whyBroken(state, request, now) : null
    if (error) decisions.push({ kind: 'request-ended', key: request.key, reason: 'error', error })
  }
  return decisions
}

function whyBroken(state: SwarmState, request: RequestState, now: number): WireError | null {
  const lost = request.stages.find((stage) => !stillServes(state, stage))
  if (lost) {
    const layers = describeRange(lost.range, state.model.layerCount)
    const name = nameOf(state, lost)
    return wireError(
      'stage-lost',
      `${name}, which held ${layers}, left in the middle of the answer`,
    )
  }
  const silent = now - request.progressAt
  if (request.phase === 'opening' && silent > SESSION_OPEN_MS) {
    const late = request.stages.filter((stage) => !request.ready.includes(stage.peer))
    const names = late.map((stage) => nameOf(state, stage)).join(', ')
    const seconds = SESSION_OPEN_MS / 1_000
    return wireError('timeout', `not linked and ready within ${seconds} s: ${names}`)
  }
  if (request.phase === 'running' && silent > SESSION_IDLE_MS)
    return wireError('timeout', `no token for ${SESSION_IDLE_MS / 1_000} s`)
  return null
}

function wireError(code: ErrorCode, message: string): WireError {
  return { code, message: message.slice(0, 500) }
}

function nameOf(state: SwarmState, stage: RouteEntry): string {
  const name = state.peers.get(stage.peer)?.name ?? ''
  return name === '' ? 'a device' : name
}

function stillServes(state: SwarmState, stage: RouteEntry): boolean {
  const peer = state.peers.get(stage.peer)
  return (
    peer !== undefined && isReady(peer) && sameRange(peer.assignment?.range ?? null, stage.range)
  )
}

/** All stages are linked and ready: the prompt may go. */
export function startSession(state: SwarmState): readonly Decision[] {
  return [...state.requests.values()]
    .filter(
      (request) => request.phase === 'opening' && request.ready.length === request.stages.length,
    )
    .map((request) => ({ kind: 'session-started', key: request.key }))
}

/** The oldest waiting request gets a route when there is room; links that it needs come first. */
export function openSession(state: SwarmState): readonly Decision[] {
  const requests = [...state.requests.values()]
  if (requests.filter(isActive).length >= SESSIONS_AT_ONCE) return []
  const next = requests.find((request) => request.phase === 'queued')
  if (!next) return []
  const route = bestRoute(state, true)
  if (route === null) {
    const error = incompleteError(state)
    return [{ kind: 'request-ended', key: next.key, reason: 'error', error }]
  }
  const missing = openMissing(state, neighbours(route.stages))
  if (missing.length > 0) return missing
  const stages = route.stages.map(({ peer, range }) => ({ peer, range }))
  // The counter starts as a session number and only grows within 32 bits.
  const session = state.nextSession as SessionId
  return [{ kind: 'session-opened', key: next.key, session, stages }]
}

export function incompleteError(state: SwarmState): WireError {
  const advice = swarmAdvice(state)
  return wireError('ring-incomplete', advice === '' ? 'the layers do not form a chain yet' : advice)
}
