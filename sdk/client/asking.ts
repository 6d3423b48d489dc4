import { CrowdError, fromWire, toCrowdError } from '../core/errors.ts'
import type { RequestId } from '../core/ids.ts'
import { LOSSES_MAX } from '../core/limits.ts'
import type { SampledToken } from '../core/sampling/params.ts'
import type { FinishReason, RequestTimings } from '../core/session/request.ts'
import type { Signaling, SignalingState } from '../net/signaling.ts'
import type { ClientMessageOf } from '../protocol/client-to-server.ts'
import type { ServerMessage, ServerMessageOf } from '../protocol/server-to-client.ts'
import { createEventQueue } from './event-queue.ts'

/** What the reader of an answer is told, in the order in which it came. */
export type AskingEvent =
  | { readonly kind: 'accepted'; readonly stages: ServerMessageOf<'ask-accepted'>['stages'] }
  | { readonly kind: 'token'; readonly sampled: SampledToken }
  | { readonly kind: 'interrupted'; readonly reason: string }
  | { readonly kind: 'resumed' }
  /** Whoever asked doesn't want more. */
  | { readonly kind: 'stopped' }
  | AskingEnd

type AskingEnd = {
  readonly kind: 'end'
  readonly reason: FinishReason
  readonly timings: RequestTimings | null
  /** The host's, with reason `error`. */
  readonly error: CrowdError | null
}

/**
 * One question, through as many requests as its host is lost and found again. Everything is decided when it
 * comes, not when it is read: a reader may be far behind, and a token of a former request must not get in.
 */
export type Asking = {
  /** @throws CrowdError signaling-closed, prompt-too-long */
  begin(): void
  onMessage(message: ServerMessage): void
  onState(state: SignalingState): void
  /** @throws CrowdError once everything before was read */
  next(): Promise<AskingEvent>
  /** Whoever asked doesn't want more. */
  readonly stop: () => void
  fail(error: CrowdError): void
  /** Ends it at the host too. Idempotent. */
  close(): void
}

export type AskingDeps = {
  readonly signaling: Pick<Signaling, 'send'>
  /** A fresh unique id for each request. */
  newRequestId(): RequestId
  /** Whether a lost host is waited for. */
  readonly resumes: boolean
}

export type Ask = Required<Omit<ClientMessageOf<'ask'>, 'request' | 'answered'>>

export function createAsking(deps: AskingDeps, ask: Ask): Asking {
  const { signaling, newRequestId, resumes } = deps
  const queue = createEventQueue<AskingEvent>()
  const answered: number[] = []
  /** Under which the host has it; null while the host is lost, and after the end. */
  let request: RequestId | null = null
  let isOver = false
  /** Since the last token. */
  let losses = 0

  function end(event: AskingEnd): void {
    isOver = true
    queue.push(event)
  }

  function fail(error: CrowdError): void {
    isOver = true
    queue.fail(error)
  }

  function take({ position, sampled }: ServerMessageOf<'ask-token'>): void {
    const expected = ask.prompt.length + answered.length
    if (position !== expected) {
      const message = `the host sent a token for position ${position} where ${expected} was next`
      fail(new CrowdError('bad-message', message))
      return
    }
    losses = 0
    answered.push(sampled.token)
    queue.push({ kind: 'token', sampled })
  }

  function lose(reason: string): void {
    request = null
    losses += 1
    // Only the word that this is the end was lost.
    if (answered.length >= ask.maxTokens)
      end({ kind: 'end', reason: 'length', timings: null, error: null })
    else if (!resumes) fail(lostError(reason))
    else if (losses > LOSSES_MAX) fail(lostError(`again and again: ${reason}`))
    else queue.push({ kind: 'interrupted', reason })
  }

  /** The host ended the former request with the former connection. */
  function resume({ model, revision }: ServerMessageOf<'welcome'>): void {
    if (model !== ask.model || revision !== ask.revision) {
      fail(new CrowdError('model-changed', `the host came back with another model: ${model}`))
      return
    }
    try {
      const id = newRequestId()
      if (!signaling.send({ ...ask, request: id, answered: [...answered] })) return
      request = id
      queue.push({ kind: 'resumed' })
    } catch (thrown) {
      fail(toCrowdError(thrown))
    }
  }

  return {
    begin() {
      request = newRequestId()
      if (signaling.send({ ...ask, request })) return
      request = null
      throw new CrowdError('signaling-closed', 'the host is not reachable')
    },
    onMessage(message) {
      if (isOver || !isAnswer(message) || message.request !== request) return
      switch (message.kind) {
        case 'ask-accepted':
          queue.push({ kind: 'accepted', stages: message.stages })
          return
        case 'ask-token':
          take(message)
          return
        case 'ask-end': {
          request = null
          const { reason, timings, error } = message
          end({ kind: 'end', reason, timings, error: error ? fromWire(error) : null })
        }
      }
    },
    onState(state) {
      if (isOver) return
      if (state.kind === 'lost' && request !== null) lose(state.reason)
      else if (state.kind === 'open' && request === null) resume(state.welcome)
      else if (state.kind === 'refused') fail(state.error)
      else if (state.kind === 'closed') fail(lostError('it was closed here'))
    },
    next: () => queue.next(),
    stop() {
      isOver = true
      queue.push({ kind: 'stopped' })
    },
    fail,
    close() {
      isOver = true
      if (request !== null) signaling.send({ kind: 'cancel', request })
      request = null
    },
  }
}

export function lostError(why: string): CrowdError {
  return new CrowdError('signaling-closed', `the connection to the host is lost: ${why}`)
}

type Answer =
  ServerMessageOf<'ask-accepted'> | ServerMessageOf<'ask-token'> | ServerMessageOf<'ask-end'>
function isAnswer(message: ServerMessage): message is Answer {
  return (
    message.kind === 'ask-accepted' || message.kind === 'ask-token' || message.kind === 'ask-end'
  )
}
