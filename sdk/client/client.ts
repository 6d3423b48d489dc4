import { CrowdError, fromWire } from '../core/errors.ts'
import type { ModelId, RequestId } from '../core/ids.ts'
import { QUEUE_WAIT_MS, SESSION_IDLE_MS } from '../core/limits.ts'
import { GREEDY } from '../core/sampling/params.ts'
import { createTextStream } from '../core/text/text-stream.ts'
import type { Signaling, SignalingState } from '../net/signaling.ts'
import type { ServerMessage, ServerMessageOf } from '../protocol/server-to-client.ts'
import type { Client, GenerateEvent, GenerateRequest } from './client-types.ts'
import { createEventQueue, type EventQueue } from './event-queue.ts'
import type { Tokenizer } from './tokenizer.ts'

export type ClientDeps = {
  signaling: Signaling
  tokenizer: Tokenizer
  model: ModelId
  /** The manifest's: the host refuses a prompt that another model's tokenizer made. */
  revision: string
  /** Tokens that the model can hold, prompt and answer together. */
  contextLength: number
  /** A fresh unique id for each request. */
  newRequestId(): RequestId
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

type Answer =
  ServerMessageOf<'ask-accepted'> | ServerMessageOf<'ask-token'> | ServerMessageOf<'ask-end'>
function isAnswer(message: ServerMessage): message is Answer {
  return (
    message.kind === 'ask-accepted' || message.kind === 'ask-token' || message.kind === 'ask-end'
  )
}

type Queue = EventQueue<Answer | { kind: 'stopped' }>

/**
 * The role that asks for text. The prompt is made into token ids here and the answer into text, so the host
 * needs neither.
 */
export function createClient(deps: ClientDeps): Client {
  const queues = new Map<RequestId, Queue>()

  deps.signaling.onMessage((message: ServerMessage) => {
    if (isAnswer(message)) queues.get(message.request)?.push(message)
  })
  deps.signaling.onState((state) => {
    const error = lostError(state)
    if (error !== null) for (const queue of queues.values()) queue.fail(error)
  })

  async function* generate(
    request: GenerateRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<GenerateEvent> {
    const prompt = encodePrompt(deps, request)
    const id = deps.newRequestId()
    const queue: Queue = createEventQueue()
    queues.set(id, queue)
    const stop = (): void => queue.push({ kind: 'stopped' })
    signal?.addEventListener('abort', stop, { once: true })
    const ring = { ended: false }
    try {
      if (signal?.aborted === true) stop()
      send(deps, request, id, prompt)
      yield* answer(deps, { request, queue, ring })
    } finally {
      // After a stop string, on abort, and when the reader walks away: the ring stops within a step.
      if (!ring.ended) deps.signaling.send({ kind: 'cancel', request: id })
      signal?.removeEventListener('abort', stop)
      queues.delete(id)
    }
  }

  return {
    generate,
    close() {
      const error = new CrowdError('aborted', 'the client was closed')
      for (const queue of queues.values()) queue.fail(error)
    },
  }
}

/** @throws CrowdError bad-request, prompt-too-long */
function encodePrompt(deps: ClientDeps, request: GenerateRequest): number[] {
  const { messages, prompt, promptIds } = request
  if ([messages, prompt, promptIds].filter((given) => given !== undefined).length !== 1) {
    throw new CrowdError('bad-request', 'give either messages or a prompt, and one only')
  }
  if ((request.stop?.length ?? 0) > 16)
    throw new CrowdError('bad-request', 'at most 16 stop strings')
  const ids =
    messages !== undefined
      ? deps.tokenizer.encodeChat(messages)
      : (promptIds?.slice() ?? deps.tokenizer.encode(prompt ?? ''))
  if (ids.length === 0) throw new CrowdError('bad-request', 'the prompt is empty')
  if (ids.length >= deps.contextLength) {
    throw new CrowdError(
      'prompt-too-long',
      `the conversation has ${ids.length} tokens and the model holds ${deps.contextLength}, answer included`,
    )
  }
  return ids
}

function send(deps: ClientDeps, request: GenerateRequest, id: RequestId, prompt: number[]): void {
  const room = deps.contextLength - prompt.length
  const sent = deps.signaling.send({
    kind: 'ask',
    request: id,
    model: deps.model,
    revision: deps.revision,
    prompt,
    maxTokens: Math.min(request.maxTokens ?? room, room),
    stopIds: [],
    sampling: { ...GREEDY, ...request.sampling },
  })
  if (!sent) throw new CrowdError('signaling-closed', 'the host is not reachable')
}

type Run = {
  readonly request: GenerateRequest
  readonly queue: Queue
  /** Whether the host has ended the request; until then it must be cancelled. */
  readonly ring: { ended: boolean }
}

/** Turns what the host sends into events, until the end or a stop string. */
async function* answer(deps: ClientDeps, run: Run): AsyncGenerator<GenerateEvent> {
  const text = createTextStream({
    decode: (ids) => deps.tokenizer.decode(ids),
    stops: run.request.stop ?? [],
  })
  const ids: number[] = []
  let last = { token: 0, logprob: 0 }
  let isQueued = true
  for (;;) {
    const event = await nextWithin(deps, run.queue, isQueued)
    isQueued = false
    switch (event.kind) {
      case 'stopped':
        yield { kind: 'end', reason: 'cancelled', timings: null, ids }
        return
      case 'ask-accepted':
        yield { kind: 'accepted', stages: event.stages }
        break
      case 'ask-token': {
        last = event.sampled
        ids.push(last.token)
        const piece = text.push(last.token)
        const chosen = { text: piece.raw, top: event.sampled.top }
        yield { kind: 'delta', text: piece.text, token: last.token, logprob: last.logprob, chosen }
        if (!piece.stopped) break
        yield { kind: 'end', reason: 'stop', timings: null, ids }
        return
      }
      case 'ask-end': {
        run.ring.ended = true
        const rest = text.end()
        if (rest.text !== '')
          yield { kind: 'delta', text: rest.text, token: last.token, logprob: last.logprob }
        if (event.error !== undefined) throw fromWire(event.error)
        const reason = rest.stopped ? 'stop' : event.reason
        yield { kind: 'end', reason, timings: event.timings, ids }
        return
      }
    }
  }
}

/** Before the ring takes the question others may be ahead of it; from then on each token has its own limit. */
async function nextWithin(
  deps: ClientDeps,
  queue: Queue,
  isQueued: boolean,
): Promise<Answer | { kind: 'stopped' }> {
  const limitMs = isQueued ? QUEUE_WAIT_MS : SESSION_IDLE_MS
  const what = isQueued ? 'the question did not get its turn' : 'no token came'
  const cancel = deps.later(limitMs, () => {
    queue.fail(new CrowdError('timeout', `${what} within ${limitMs / 1_000} s`))
  })
  try {
    return await queue.next()
  } finally {
    cancel()
  }
}

function lostError(state: SignalingState): CrowdError | null {
  switch (state.kind) {
    case 'lost':
      return new CrowdError(
        'signaling-closed',
        `the connection to the host closed: ${state.reason}`,
      )
    case 'refused':
      return state.error
    case 'closed':
      return new CrowdError('signaling-closed', 'the connection to the host is closed')
    case 'connecting':
    case 'open':
      return null
  }
}
