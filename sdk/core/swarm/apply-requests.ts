import { answered, doubted } from './apply-faults.ts'
import type { SessionId } from '../ids.ts'
import type { SwarmEvent } from './events.ts'
import type { FinishReason } from '../session/request.ts'
import { leavingAfter, moveOf, validAfter } from './next-epoch.ts'
import { predictLap } from './predict.ts'
import type { Leaving, RequestPhase, RequestState } from './request-state.ts'
import type { SwarmState } from './state.ts'
import { lengthOf, listOf, tokensOf, withToken, type TokenList } from '../session/token-list.ts'
import { isOver, isRouted, pairBetween } from './views.ts'

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
    resumed: event.answered !== undefined,
    maxTokens: Math.min(event.maxTokens, state.model.contextLength - event.prompt.length),
    stopIds: event.stopIds,
    sampling: event.sampling,
    session: null,
    epoch: 0,
    stages: [],
    leaving: [],
    freed: [],
    moved: null,
    valid: [],
    sharedRows: Infinity,
    followers: [],
    givenRows: 0,
    ready: [],
    answer: listOf(event.answered ?? []),
    broken: null,
    repairs: 0,
    startedAt: null,
    firstTokenMs: null,
    progressAt: now,
    positions: [],
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
    epoch: event.epoch,
    stages: event.stages,
    leaving: leavingAfter(request, event),
    freed: [],
    moved: event.isMove === true ? moveOf(request, now) : request.moved,
    ...validAfter(state, request, event),
    stageMs: event.stages.map(() => null),
    prediction: predictLap(state, event.stages),
    wireMs: [],
    ready: [],
    repairs: request.broken === null ? request.repairs : request.repairs + 1,
    progressAt: now,
    positions: event.stages.map(() => 0),
  }))
  if (event.session !== state.nextSession) return sessionReleased(next, event.session)
  // Unsigned 32-bit, and 0 stays free.
  return { ...next, nextSession: event.session >= 0xffff_ffff ? 1 : event.session + 1 }
}

export function rowsFreed(state: SwarmState, { key, peer }: EventOf<'rows-freed'>): SwarmState {
  return withRequest(state, key, (request) => ({ ...request, freed: [...request.freed, peer] }))
}

export function stageReady(state: SwarmState, event: EventOf<'stage-ready'>): SwarmState {
  const { peer, cached, kept } = event
  return withRequest(state, event.key, (request) =>
    request.ready.some((stage) => stage.peer === peer)
      ? request
      : {
          ...request,
          ready: [...request.ready, { peer, cached, kept }],
          followers: [...new Set([...request.followers, peer])],
        },
  )
}

/** What the stages have of the session stays with them; the next route goes on with it. */
export function sessionBroken(
  state: SwarmState,
  { key, error, faulty, doubted: doubtful = [] }: EventOf<'session-broken'>,
  now: number,
): SwarmState {
  return withRequest(doubted(state, doubtful), key, (request) => {
    if (!isRouted(request)) return request
    const { since = now, count = 0, shunned = [] } = request.broken ?? {}
    const broken = { since, error, count: count + 1, shunned: [...shunned, ...faulty] }
    return { ...request, phase: 'repairing', ready: [], broken, progressAt: now }
  })
}

export function sessionStarted(
  state: SwarmState,
  event: EventOf<'session-started'>,
  now: number,
): SwarmState {
  return withRequest(state, event.key, (request) => ({
    ...request,
    phase: 'running',
    givenRows: request.promptLength + lengthOf(request.answer),
    startedAt: request.startedAt ?? now,
    progressAt: now,
  }))
}

/**
 * A stage that computed rows is progress too: a long prompt takes a while. Rows that can't be there yet count as those
 * that can, or an answer could be held up for as long as somebody likes.
 */
export function gotOn(state: SwarmState, event: EventOf<'beat'>, now: number): SwarmState {
  let next = state
  for (const { session, epoch, position } of event.sessions) {
    for (const request of state.requests.values()) {
      if (request.session !== session || request.epoch !== epoch || !isRouted(request)) continue
      const stage = request.stages.findIndex(({ peer }) => peer === event.peer)
      const rows = Math.min(position, request.promptLength + lengthOf(request.answer))
      if (rows <= (request.positions[stage] ?? Infinity)) continue
      const positions = request.positions.with(stage, rows)
      next = withRequest(next, request.key, (was) => ({ ...was, positions, progressAt: now }))
    }
  }
  return next
}

export function tokenChosen(
  state: SwarmState,
  event: EventOf<'token-chosen'>,
  now: number,
): SwarmState {
  const next = withRequest(state, event.key, (request) => ({
    ...request,
    answer: withToken(request.answer, event.sampled.token),
    leaving: NOBODY,
    broken: null,
    // Of an answer that another session began the asker knows when it came.
    firstTokenMs: request.answer === null ? now - (request.startedAt ?? now) : request.firstTokenMs,
    progressAt: now,
  }))
  if (next === state) return state
  // Whoever was left behind may be given other blocks now, or none.
  const isFreed = (state.requests.get(event.key)?.leaving.length ?? 0) > 0
  return { ...next, laps: state.laps + 1, topology: next.topology + (isFreed ? 1 : 0) }
}

const NOBODY: readonly Leaving[] = []

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

/** For the dashboard the number of tokens is enough. */
function endOf(answer: TokenList): TokenList {
  return answer && { ...answer, before: null }
}

/** An answer that came to its end may be asked about; its stages are whole. */
function withRetained(
  { retained, retainMs }: SwarmState,
  { phase, session, epoch, stages, prompt, answer, sharedRows }: RequestState,
  { reason }: EventOf<'request-ended'>,
  now: number,
): SwarmState['retained'] {
  const isWhole = phase === 'running' && reason !== 'error' && answer !== null
  if (session === null || !isWhole || retainMs === 0) return retained
  const text = [...prompt, ...tokensOf(answer)]
  const kept = { session, epoch, stages, text, sharedRows, since: now }
  return new Map(retained).set(session, kept)
}

export function sessionReleased(state: SwarmState, session: SessionId): SwarmState {
  if (!state.retained.has(session)) return state
  const retained = new Map(state.retained)
  retained.delete(session)
  return { ...state, retained }
}

export function requestEnded(
  state: SwarmState,
  event: EventOf<'request-ended'>,
  now: number,
): SwarmState {
  const was = state.requests.get(event.key)
  if (was === undefined || isOver(was)) return state
  // Goes behind all others: the ones that ended first are forgotten first, however long they ran.
  const order = new Map(state.requests)
  order.delete(event.key)
  order.set(event.key, {
    ...was,
    phase: PHASE_AT_END[event.reason],
    leaving: NOBODY,
    prompt: [],
    answer: endOf(was.answer),
    reason: event.reason,
    error: event.error,
  })
  const ended = { ...state, requests: order, retained: withRetained(state, was, event, now) }
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
