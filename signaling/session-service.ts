import { CrowdError, fromWire, type ErrorCode, type WireError } from '../sdk/core/errors.ts'
import type { PeerId, SessionId } from '../sdk/core/ids.ts'
import { REQUESTS_PER_ASKER, REQUESTS_QUEUED_MAX, RESUMED_QUEUED_MAX } from '../sdk/core/limits.ts'
import { lengthOf } from '../sdk/core/session/token-list.ts'
import { requestKey } from '../sdk/core/swarm/apply-requests.ts'
import { incompleteError, newlyFaulty } from '../sdk/core/swarm/decide-requests.ts'
import { answerEnd } from '../sdk/core/swarm/answer-end.ts'
import type { SwarmEvent } from '../sdk/core/swarm/events.ts'
import type { RequestState } from '../sdk/core/swarm/request-state.ts'
import type { SwarmState } from '../sdk/core/swarm/state.ts'
import { bestRoute, isOver, isRouted } from '../sdk/core/swarm/views.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import { checkAnswered, wasComplete } from './resumed-ask.ts'

/**
 * Requests and sessions: what a message of an asker or a stage means in the present state. Messages about
 * sessions and epochs that are over mean nothing and give no events.
 */

/**
 * @returns no events for a request that is known already
 * @throws CrowdError bad-request, model-not-found, model-changed, prompt-too-long, ring-incomplete, too-many-requests
 */
export function askEvents(
  state: SwarmState,
  asker: PeerId,
  ask: ClientMessageOf<'ask'>,
): readonly SwarmEvent[] {
  if (state.requests.has(requestKey(asker, ask.request))) return []
  checkAsk(state, ask)
  const isResumed = ask.answered !== undefined
  // Whoever was answered when the host stopped may be back before the devices are.
  if (!isResumed && bestRoute(state, false) === null) throw fromWire(incompleteError(state))
  const requests = [...state.requests.values()]
  const own = requests.filter((request) => request.asker === asker && !isOver(request))
  if (own.length >= REQUESTS_PER_ASKER)
    throw new CrowdError('too-many-requests', `${own.length} questions of yours are open already`)
  const waiting = requests.filter(
    ({ phase, resumed }) => phase === 'queued' && resumed === isResumed,
  )
  if (waiting.length >= (isResumed ? RESUMED_QUEUED_MAX : REQUESTS_QUEUED_MAX))
    throw new CrowdError('too-many-requests', `${waiting.length} requests are waiting already`)
  const { request, prompt, answered, maxTokens, stopIds, sampling } = ask
  const asked = { asker, request, prompt, answered, maxTokens, stopIds, sampling }
  return [{ kind: 'asked', ...asked }, ...(wasComplete(state.model, ask) ? [stopOf(asked)] : [])]
}

function stopOf({ asker, request }: Pick<RequestState, 'asker' | 'request'>): SwarmEvent {
  return { kind: 'request-ended', key: requestKey(asker, request), reason: 'stop', error: null }
}

function checkAsk(state: SwarmState, ask: ClientMessageOf<'ask'>): void {
  const { model, change } = state
  if (ask.revision !== undefined && ask.revision !== model.revision)
    throw new CrowdError('model-changed', `the host now serves another model: ${model.id}`)
  if (ask.model !== model.id)
    throw new CrowdError('model-not-found', `this host serves ${model.id}, not ${ask.model}`)
  if (change?.phase === 'draining')
    throw new CrowdError('model-changed', `the host is changing from ${model.id} to ${change.name}`)
  if (ask.maxTokens < 1) throw new CrowdError('bad-request', 'maxTokens must be at least 1')
  const unknown = [...ask.prompt, ...(ask.answered ?? [])].find((id) => id >= model.vocabSize)
  if (unknown !== undefined)
    throw new CrowdError(
      'bad-request',
      `token ${unknown} is not in the vocabulary of ${model.vocabSize}`,
    )
  if (ask.prompt.length + 1 > model.contextLength)
    throw new CrowdError(
      'prompt-too-long',
      `the prompt has ${ask.prompt.length} tokens and the model holds ${model.contextLength}, ` +
        'answer included: at least one token must be left for the answer',
    )
  if (!wasComplete(model, ask)) checkAnswered(model, ask)
}

export function cancelEvents(
  state: SwarmState,
  asker: PeerId,
  message: ClientMessageOf<'cancel'>,
): readonly SwarmEvent[] {
  const key = requestKey(asker, message.request)
  const request = state.requests.get(key)
  if (!request || isOver(request)) return []
  return [{ kind: 'request-ended', key, reason: 'cancelled', error: null }]
}

type StageMessage =
  | ClientMessageOf<'session-ready'>
  | ClientMessageOf<'session-token'>
  | ClientMessageOf<'session-end'>
  | ClientMessageOf<'session-timings'>
  | ClientMessageOf<'session-step'>
  | ClientMessageOf<'session-failed'>

/**
 * Nobody's fault, or nobody's that is known: another try, or another route, may do. Time runs out in a step while the
 * answer runs; before, only in the wait for a link, which has two ends.
 */
const PASSING_FAULTS: ReadonlySet<ErrorCode> = new Set([
  'stage-lost',
  'bad-frame',
  'timeout',
  'too-many-requests',
])

/** @throws CrowdError bad-message, when the sender has no such part in the session */
export function stageEvents(
  state: SwarmState,
  sender: PeerId,
  message: StageMessage,
): readonly SwarmEvent[] {
  const request = activeRequest(state, message.session, message.epoch)
  if (!request) return []
  const index = request.stages.findIndex((stage) => stage.peer === sender)
  if (index < 0) throw new CrowdError('bad-message', `${message.kind}: not a stage of this session`)
  const isLast = index === request.stages.length - 1
  switch (message.kind) {
    case 'session-ready':
      return readyEvents(request, sender, message)
    case 'session-failed':
      return failureEvents(request, sender, message)
    case 'session-timings':
      return [{ kind: 'timings-reported', key: request.key, timings: message.timings }]
    case 'session-step':
      return [
        { kind: 'step-reported', key: request.key, stage: index, computeMs: message.computeMs },
      ]
    case 'session-token':
      return tokenEvents(state, request, isLast ? message : null)
    case 'session-end':
      if (!isLast || request.phase !== 'running')
        throw new CrowdError(
          'bad-message',
          'session-end comes from the last stage of a running session',
        )
      return endEvents(state, request, message)
  }
}

/** An answer that is cut short would pass for a whole one: the tokens must bear the end out. */
function endEvents(
  state: SwarmState,
  request: RequestState,
  { reason }: ClientMessageOf<'session-end'>,
): readonly SwarmEvent[] {
  if (reason === answerEnd(state, request))
    return [{ kind: 'request-ended', key: request.key, reason, error: null }]
  const what = `ended the answer with ${reason} after ${lengthOf(request.answer)} tokens`
  return ruleBrokenBy(request, lastOf(request), what)
}

function activeRequest(state: SwarmState, session: SessionId, epoch: number): RequestState | null {
  for (const request of state.requests.values())
    if (request.session === session && request.epoch === epoch && isRouted(request)) return request
  return null
}

/** Tokens come from the last stage, one position after the other; anything else would be wrong text. */
function tokenEvents(
  state: SwarmState,
  request: RequestState,
  message: ClientMessageOf<'session-token'> | null,
): readonly SwarmEvent[] {
  if (message === null || request.phase !== 'running')
    throw new CrowdError('bad-message', 'tokens come from the last stage of a running session')
  const { position, sampled } = message
  const expected = request.promptLength + lengthOf(request.answer)
  const ids = [sampled.token, ...sampled.top.map(({ token }) => token)]
  const unknown = ids.find((token) => token >= state.model.vocabSize)
  const wrong =
    position !== expected || answerEnd(state, request) !== null
      ? `sent a token for position ${position} where ${expected} was next`
      : unknown !== undefined
        ? `sent token ${unknown}, which is not in the vocabulary of ${state.model.vocabSize}`
        : null
  if (wrong !== null) return ruleBrokenBy(request, lastOf(request), wrong)
  return [{ kind: 'token-chosen', key: request.key, position, sampled }]
}

function failureEvents(
  request: RequestState,
  sender: PeerId,
  message: ClientMessageOf<'session-failed'>,
): readonly SwarmEvent[] {
  const given = fromWire(message.error)
  const code = given.code === 'link-closed' ? 'stage-lost' : given.code
  const error = { code, message: given.message }
  const { key } = request
  const isOwnStep = code === 'timeout' && request.phase === 'running'
  const doubted = linkFault(request, sender, code)
  // Whatever else a stage may say was looked at when the question came: the question isn't at fault.
  if (isOwnStep || (doubted === null && !PASSING_FAULTS.has(code)))
    return brokenBy(request, sender, error)
  return [{ kind: 'session-broken', key, error, faulty: [], doubted: doubted ?? [] }]
}

/** What came in may be the cause, which the first stage can't say: its tokens come from the host. */
const INPUT_FAULTS: ReadonlySet<ErrorCode> = new Set(['non-finite', 'prompt-too-long'])

/** The ends of the link of which one is to blame, and no third one: of that to the next stage, or of that from the one before. */
function linkFault(request: RequestState, sender: PeerId, code: ErrorCode): PeerId[] | null {
  const isFirst = request.stages[0]?.peer === sender
  if (code === 'stage-lost') return endsOf(request, sender, 1)
  if (code === 'bad-frame') return endsOf(request, sender, -1)
  return INPUT_FAULTS.has(code) && !isFirst ? endsOf(request, sender, -1) : null
}

function endsOf({ stages }: RequestState, sender: PeerId, towards: 1 | -1): PeerId[] {
  const index = stages.findIndex(({ peer }) => peer === sender)
  const other = stages.at((index + towards) % stages.length)
  return other === undefined || other.peer === sender ? [] : [sender, other.peer]
}

function brokenBy(request: RequestState, faulty: PeerId, error: WireError): SwarmEvent[] {
  return [
    ...newlyFaulty(request, [faulty]).map((peer): SwarmEvent => ({
      kind: error.code === 'out-of-memory' ? 'outgrown' : 'struck',
      peer,
      reason: error.message,
    })),
    { kind: 'session-broken', key: request.key, error, faulty: [faulty] },
  ]
}

/** Nobody may claim rows that the session can't have, or the caches of the next stage would have a hole. */
function readyEvents(
  request: RequestState,
  peer: PeerId,
  { cached, kept }: ClientMessageOf<'session-ready'>,
): readonly SwarmEvent[] {
  const valid = request.valid[request.stages.findIndex((stage) => stage.peer === peer)] ?? 0
  if (cached <= valid && kept <= cached)
    return [{ kind: 'stage-ready', key: request.key, peer, cached, kept }]
  const what = `claimed ${cached} rows and ${kept} to send of the ${valid} that hold`
  return ruleBrokenBy(request, peer, what)
}

function ruleBrokenBy(request: RequestState, peer: PeerId, what: string): SwarmEvent[] {
  const isLast = peer === lastOf(request)
  const message = `${isLast ? 'the last stage' : 'a stage'} ${what}`
  return brokenBy(request, peer, { code: 'bad-message', message })
}

/** @throws CrowdError internal for a request without a route */
function lastOf({ stages }: RequestState): PeerId {
  const last = stages.at(-1)
  if (last === undefined) throw new CrowdError('internal', 'a session without stages')
  return last.peer
}
