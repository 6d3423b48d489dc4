import { answered } from './apply-peers.ts'
import type { SwarmEvent } from './events.ts'
import type { FinishReason } from '../session/request.ts'
import { predictLap } from './predict.ts'
import type { RequestPhase, RequestState, SwarmState } from './state.ts'
import { isOver, pairBetween } from './views.ts'

type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { kind: Kind }>

/** Ended requests kept for the dashboard. */
const ENDED_KEPT = 24

export function requestKey(asker: string, request: string): string {
  return `${asker}/${request}`
}

function withRequest(
  state: SwarmState,
  key: string,
  change: (request: RequestState) => RequestState,
): SwarmState {
  const present = state.requests.get(key)
  if (!present || isOver(present)) return state
  return { ...state, requests: new Map(state.requests).set(key, change(present)) }
}

export function asked(state: SwarmState, event: EventOf<'asked'>, now: number): SwarmState {
  const key = requestKey(event.asker, event.request)
  if (state.requests.has(key)) return state
  const request: RequestState = {
    key,
    asker: event.asker,
    request: event.request,
    phase: 'queued',
    prompt: event.prompt,
    promptLength: event.prompt.length,
    maxTokens: Math.min(event.maxTokens, state.model.contextLength - event.prompt.length),
    stopIds: event.stopIds,
    sampling: event.sampling,
    session: null,
    epoch: 0,
    stages: [],
    ready: [],
    tokens: 0,
    startedAt: null,
    firstTokenMs: null,
    progressAt: now,
    timings: null,
    prediction: null,
    stageMs: [],
    wireMs: [],
    reason: null,
    error: null,
  }
  return { ...state, requests: new Map(state.requests).set(key, request) }
}

export function sessionOpened(
  state: SwarmState,
  event: EventOf<'session-opened'>,
  now: number,
): SwarmState {
  const next = withRequest(state, event.key, (request) => ({
    ...request,
    phase: 'opening',
    session: event.session,
    epoch: request.epoch + 1,
    stages: event.stages,
    stageMs: event.stages.map(() => null),
    prediction: predictLap(state, event.stages),
    wireMs: [],
    ready: [],
    progressAt: now,
  }))
  // Unsigned 32-bit, and 0 stays free.
  return { ...next, nextSession: event.session >= 0xffff_ffff ? 1 : event.session + 1 }
}

export function stageReady(state: SwarmState, event: EventOf<'stage-ready'>): SwarmState {
  return withRequest(state, event.key, (request) =>
    request.ready.includes(event.peer)
      ? request
      : { ...request, ready: [...request.ready, event.peer] },
  )
}

/** The prompt isn't needed here any more, so it isn't kept. */
export function sessionStarted(
  state: SwarmState,
  event: EventOf<'session-started'>,
  now: number,
): SwarmState {
  return withRequest(state, event.key, (request) => ({
    ...request,
    phase: 'running',
    prompt: [],
    startedAt: now,
    progressAt: now,
  }))
}

export function tokenChosen(
  state: SwarmState,
  event: EventOf<'token-chosen'>,
  now: number,
): SwarmState {
  const next = withRequest(state, event.key, (request) => ({
    ...request,
    tokens: request.tokens + 1,
    firstTokenMs: request.firstTokenMs ?? now - (request.startedAt ?? now),
    progressAt: now,
  }))
  return next === state ? state : { ...next, laps: state.laps + 1 }
}

export function timingsReported(state: SwarmState, event: EventOf<'timings-reported'>): SwarmState {
  return withRequest(state, event.key, (request) => ({
    ...request,
    timings: { ...event.timings, firstTokenMs: request.firstTokenMs ?? 0 },
    wireMs: wireOf(state, request),
  }))
}

/** A lap's frames are about as small as the heartbeats that measure a round trip. */
function wireOf(state: SwarmState, { stages }: RequestState): (number | null)[] {
  return stages.map(({ peer }, index) => {
    const next = stages[(index + 1) % stages.length]
    if (next === undefined || next.peer === peer) return null
    const rttMs = pairBetween(state, peer, next.peer)?.rttMs ?? null
    return rttMs === null ? null : rttMs / 2
  })
}

export function stepReported(state: SwarmState, event: EventOf<'step-reported'>): SwarmState {
  return withRequest(state, event.key, (request) => ({
    ...request,
    stageMs: request.stageMs.map((known, stage) =>
      stage === event.stage ? event.computeMs : known,
    ),
  }))
}

const PHASE_AT_END: Readonly<Record<FinishReason, RequestPhase>> = {
  stop: 'done',
  length: 'done',
  cancelled: 'cancelled',
  error: 'failed',
}

export function requestEnded(state: SwarmState, event: EventOf<'request-ended'>): SwarmState {
  const was = state.requests.get(event.key)
  if (was === undefined || isOver(was)) return state
  // Goes behind all others: the ones that ended first are forgotten first, however long they ran.
  const order = new Map(state.requests)
  order.delete(event.key)
  order.set(event.key, {
    ...was,
    phase: PHASE_AT_END[event.reason],
    prompt: [],
    reason: event.reason,
    error: event.error,
  })
  const ended = { ...state, requests: order }
  const isGood = event.reason === 'stop' || event.reason === 'length'
  const judged = was.phase === 'running' && isGood ? answered(ended, was.stages) : ended
  // Devices that were busy may be given other blocks now.
  const next = { ...judged, topology: judged.topology + 1 }
  const over = [...next.requests.values()].filter(isOver)
  if (over.length <= ENDED_KEPT) return next
  const requests = new Map(next.requests)
  for (const request of over.slice(0, over.length - ENDED_KEPT)) requests.delete(request.key)
  return { ...next, requests }
}
