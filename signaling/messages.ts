import type { PeerId, SessionId } from '../sdk/core/ids.ts'
import { needsHistory } from '../sdk/core/sampling/params.ts'
import { planResume, type StageRows } from '../sdk/core/session/resume-plan.ts'
import { lengthOf, tokensOf } from '../sdk/core/session/token-list.ts'
import type { SwarmEvent } from '../sdk/core/swarm/events.ts'
import { newSources } from '../sdk/core/swarm/decide-pieces.ts'
import type { RequestState } from '../sdk/core/swarm/request-state.ts'
import type { PairState, SwarmState } from '../sdk/core/swarm/state.ts'
import { isActive, nextPair, otherEnd } from '../sdk/core/swarm/views.ts'
import type { ServerMessage, ServerMessageOf } from '../sdk/protocol/server-to-client.ts'

type Outgoing = { readonly to: PeerId; readonly message: ServerMessage }
export type IceServers = ServerMessageOf<'pair-open'>['iceServers']

export type MessageDeps = {
  readonly iceServers: IceServers
  /** Monotonic, ms. */
  now(): number
}

/** The most stop tokens that a session carries. */
const STOP_IDS_MAX = 128

/** What peers must be told of an event; `before` and `after` are the states around it. */
export function messagesFor(
  before: SwarmState,
  event: SwarmEvent,
  after: SwarmState,
  { iceServers, now }: MessageDeps,
): readonly Outgoing[] {
  switch (event.kind) {
    case 'assigned':
      return assignMessage(after, event.peer, newSources(after, event.peer, now()).length)
    case 'pair-opened':
    case 'pair-retried':
      return pairMessages(before, after, iceServers)
    case 'pair-closed':
      return closeMessages(before.pairs.get(event.pair), event.reason)
    case 'peer-left':
    case 'peer-forgotten':
      return goneMessages(before, event.peer)
    case 'session-opened':
      return [...leftMessages(before, after, event.key), ...openMessages(after, event.key)]
    case 'session-released':
      return releaseMessages(before, event.session)
    case 'rows-freed':
      return rowsMessages(before.requests.get(event.key), event.peer)
    case 'session-started':
      return startMessages(before, event.key)
    case 'token-chosen':
      return [...tokenMessage(before, event), ...freeMessages(before.requests.get(event.key))]
    case 'request-ended':
      return endMessages(before, after, event.key)
    case 'model-switched':
      return modelMessages(after)
    case 'peer-joined':
    case 'peer-dropped':
    case 'peer-silent':
    case 'beat':
    case 'host-slept':
    case 'pledged':
    case 'stage-reported':
    case 'stats-reported':
    case 'link-reported':
    case 'relayed':
    case 'asked':
    case 'stage-ready':
    case 'timings-reported':
    case 'step-reported':
    case 'model-wanted':
    case 'model-chosen':
    case 'model-refused':
    case 'model-settled':
    case 'session-broken':
    case 'struck':
    case 'outgrown':
    case 'pledge-expired':
    case 'planned':
    case 'sources-sought':
    case 'routed':
      return []
  }
}

/** Where everybody finds the model that is served. */
export function servedModel({
  model,
}: Pick<SwarmState, 'model'>): Pick<
  ServerMessageOf<'model'>,
  'model' | 'revision' | 'manifestPath'
> {
  const { id, revision } = model
  return { model: id, revision, manifestPath: `/models/${id}/manifest.json` }
}

function modelMessages(state: SwarmState): Outgoing[] {
  return [...state.peers.keys()].map((to) => ({
    to,
    message: { kind: 'model', ...servedModel(state) },
  }))
}

function assignMessage(state: SwarmState, peer: PeerId, sources: number): Outgoing[] {
  const assignment = state.peers.get(peer)?.assignment
  if (!assignment) return []
  const message: ServerMessage = {
    kind: 'assign',
    assignment: assignment.number,
    model: state.model.id,
    revision: state.model.revision,
    range: assignment.range === null ? null : { ...assignment.range },
    ...(assignment.keep === null ? {} : { keep: { ...assignment.keep } }),
    reason: assignment.reason.slice(0, 200),
    ...(sources === 0 ? {} : { sources }),
  }
  return [{ to: peer, message }]
}

/** The pair that is new or has a new attempt, to both of its ends. */
function pairMessages(before: SwarmState, after: SwarmState, iceServers: IceServers): Outgoing[] {
  return [...after.pairs.values()]
    .filter((pair) => before.pairs.get(pair.pair)?.attempt !== pair.attempt)
    .flatMap((pair) =>
      [pair.from, pair.to].map((to) => ({
        to,
        message: {
          kind: 'pair-open' as const,
          pair: pair.pair,
          peer: otherEnd(pair, to),
          initiator: to === pair.from,
          attempt: pair.attempt,
          ...(pair.purpose === 'ring'
            ? { iceServers }
            : { purpose: pair.purpose, iceServers: iceServers.filter(isFree) }),
        },
      })),
    )
}

/** A TURN server is somebody's line too, and made for frames. */
function isFree({ urls }: IceServers[number]): boolean {
  return !/^turns?:/i.test(urls)
}

function closeMessages(pair: PairState | undefined, reason: string): Outgoing[] {
  if (!pair) return []
  const message = { kind: 'pair-close' as const, pair: pair.pair, reason }
  return [pair.from, pair.to].map((to) => ({ to, message }))
}

function goneMessages(before: SwarmState, peer: PeerId): Outgoing[] {
  return [...before.pairs.values()]
    .filter((pair) => pair.from === peer || pair.to === peer)
    .flatMap((pair) => closeMessages(pair, 'the other device left'))
    .filter((outgoing) => outgoing.to !== peer)
}

function openMessages(state: SwarmState, key: string): Outgoing[] {
  const request = state.requests.get(key)
  if (!request || request.session === null) return []
  const { session, stages } = request
  const wireStages = stages.map(({ peer, range }) => ({ peer, range: { ...range } }))
  const history = needsHistory(request.sampling) ? textOf(request) : []
  const stopIds = [...new Set([...state.model.eosTokenIds, ...request.stopIds])]
  const opens = stages.map((stage, index): Outgoing => ({
    to: stage.peer,
    message: {
      kind: 'session-open',
      session,
      epoch: request.epoch,
      stage: index,
      stages: wireStages,
      nextPair: nextPair(state, stages, index),
      sampling: wireSampling(request),
      history: index === stages.length - 1 ? history : [],
      promptLength: request.promptLength,
      answered: lengthOf(request.answer),
      valid: request.valid[index] ?? 0,
      maxTokens: request.maxTokens,
      stopIds: stopIds.slice(0, STOP_IDS_MAX),
    },
  }))
  const accepted: ServerMessage = {
    kind: 'ask-accepted',
    request: request.request,
    session,
    stages: wireStages.map((stage) => ({
      ...stage,
      name: state.peers.get(stage.peer)?.name ?? '',
    })),
  }
  return [{ to: request.asker, message: accepted }, ...opens]
}

function wireSampling(request: RequestState): ServerMessageOf<'session-open'>['sampling'] {
  const { logitBias, ...rest } = request.sampling
  return { ...rest, logitBias: logitBias.map(([token, bias]) => [token, bias]) }
}

/** Stages of the former route that have no part in the new one free what they hold. */
function leftMessages(before: SwarmState, after: SwarmState, key: string): Outgoing[] {
  const request = after.requests.get(key)
  if (!request || request.session === null) return []
  const { session, stages, leaving } = request
  const former = before.retained.get(session) ?? before.requests.get(key)
  if (!former) return []
  const { epoch } = former
  return former.stages
    .filter(({ peer }) => ![...stages, ...leaving].some((stage) => stage.peer === peer))
    .map(({ peer }) => ({
      to: peer,
      message: { kind: 'session-close', session, epoch, retain: false },
    }))
}

/** Devices that an answer was moved away from are done with it. */
function freeMessages(request: RequestState | undefined): Outgoing[] {
  if (!request || request.session === null) return []
  const { session, leaving } = request
  return leaving.map(({ peer, epoch }) => ({
    to: peer,
    message: { kind: 'session-close', session, epoch, retain: false },
  }))
}

/** A device frees what it has of an answer whose turn comes later. */
function rowsMessages(request: RequestState | undefined, peer: PeerId): Outgoing[] {
  if (!request || request.session === null) return []
  const { session, stages, leaving } = request
  const left = leaving.find((stage) => stage.peer === peer)
  if (left === undefined && !stages.some((stage) => stage.peer === peer)) return []
  const epoch = left?.epoch ?? request.epoch
  return [{ to: peer, message: { kind: 'session-close', session, epoch, retain: false } }]
}

/** Prompt and answer so far. */
function textOf({ prompt, answer }: RequestState): number[] {
  return [...prompt, ...tokensOf(answer)]
}

function startMessages(state: SwarmState, key: string): Outgoing[] {
  const request = state.requests.get(key)
  if (!request || request.session === null) return []
  const { session, epoch, stages, ready } = request
  const rows = stages.map(({ peer }) => ready.find((stage) => stage.peer === peer) ?? NO_ROWS)
  const text = textOf(request)
  return planResume(rows, text.length - 1).map(({ from, forward }, index): Outgoing => ({
    to: stages[index]?.peer ?? request.asker,
    message: {
      kind: 'session-start',
      session,
      epoch,
      from,
      forward,
      prompt: index === 0 ? text.slice(from) : [],
    },
  }))
}

function releaseMessages({ retained }: SwarmState, session: SessionId): Outgoing[] {
  const former = retained.get(session)
  if (!former) return []
  const { epoch, stages } = former
  return stages.map(({ peer }) => ({
    to: peer,
    message: { kind: 'session-close', session, epoch, retain: false },
  }))
}

const NO_ROWS: StageRows = { cached: 0, kept: 0 }

function tokenMessage(
  before: SwarmState,
  event: Extract<SwarmEvent, { kind: 'token-chosen' }>,
): Outgoing[] {
  const request = before.requests.get(event.key)
  if (!request) return []
  const { token, logprob, top } = event.sampled
  return [
    {
      to: request.asker,
      message: {
        kind: 'ask-token',
        request: request.request,
        position: event.position,
        sampled: { token, logprob, top: top.map((entry) => ({ ...entry })) },
      },
    },
  ]
}

function endMessages(before: SwarmState, after: SwarmState, key: string): Outgoing[] {
  const was = before.requests.get(key)
  const request = after.requests.get(key)
  if (!was || !request?.reason || was.reason !== null) return []
  const end: ServerMessage = {
    kind: 'ask-end',
    request: request.request,
    reason: request.reason,
    timings: request.timings === null ? null : { ...request.timings },
    ...(request.error === null ? {} : { error: request.error }),
  }
  const { session, epoch } = was
  if (!isActive(was) || session === null) return [{ to: was.asker, message: end }]
  const closes = was.stages.map(({ peer }): Outgoing => ({
    to: peer,
    message: { kind: 'session-close', session, epoch, retain: after.retained.has(session) },
  }))
  return [{ to: was.asker, message: end }, ...closes, ...freeMessages(was)]
}
