import { CrowdError } from '../core/errors.ts'
import type { ModelId, RequestId } from '../core/ids.ts'
import { QUEUE_WAIT_MS, RESUME_MS, SESSION_IDLE_MS } from '../core/limits.ts'
import { GREEDY } from '../core/sampling/params.ts'
import { createTextStream } from '../core/text/text-stream.ts'
import type { Signaling } from '../net/signaling.ts'
import { createAsking, lostError, type Ask, type Asking, type AskingEvent } from './asking.ts'
import type { Client, GenerateEvent, GenerateRequest } from './client-types.ts'
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
  /** How long an answer waits for a host that was lost, ms; RESUME_MS when absent, 0 = not at all. */
  resumeMs?: number
}

/**
 * The role that asks for text. The prompt is made into token ids here and the answer into text, so the host
 * needs neither. An answer outlives the connection to its host: it is asked for again with what is there of it.
 */
export function createClient(deps: ClientDeps): Client {
  const { signaling, resumeMs = RESUME_MS } = deps
  const askings = new Set<Asking>()

  signaling.onMessage((message) => {
    for (const asking of askings) asking.onMessage(message)
  })
  signaling.onState((state) => {
    for (const asking of askings) asking.onState(state)
  })

  async function* generate(
    request: GenerateRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<GenerateEvent> {
    const ask = askOf(deps, request, encodePrompt(deps, request))
    const asking = createAsking({ ...deps, resumes: resumeMs > 0 }, ask)
    askings.add(asking)
    signal?.addEventListener('abort', asking.stop, { once: true })
    try {
      if (signal?.aborted === true) asking.stop()
      else asking.begin()
      yield* answer(deps, request, asking)
    } finally {
      // After a stop string, on abort, and when the reader walks away: the ring stops within a step.
      asking.close()
      signal?.removeEventListener('abort', asking.stop)
      askings.delete(asking)
    }
  }

  return {
    generate,
    close() {
      const error = new CrowdError('aborted', 'the client was closed')
      for (const asking of askings) asking.fail(error)
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

function askOf(deps: ClientDeps, request: GenerateRequest, prompt: number[]): Ask {
  const room = deps.contextLength - prompt.length
  return {
    kind: 'ask',
    model: deps.model,
    revision: deps.revision,
    prompt,
    maxTokens: Math.min(request.maxTokens ?? room, room),
    stopIds: [],
    sampling: { ...GREEDY, ...request.sampling },
  }
}

/** Turns what comes into events, until the end or a stop string. */
async function* answer(
  deps: ClientDeps,
  request: GenerateRequest,
  asking: Asking,
): AsyncGenerator<GenerateEvent> {
  const text = createTextStream({
    decode: (ids) => deps.tokenizer.decode(ids),
    stops: request.stop ?? [],
  })
  const ids: number[] = []
  let last = { token: 0, logprob: 0 }
  let before: AskingEvent['kind'] | null = null
  for (;;) {
    const event = await nextWithin(deps, asking, before)
    before = event.kind
    switch (event.kind) {
      case 'accepted':
      case 'interrupted':
      case 'resumed':
        yield event
        break
      case 'token': {
        last = event.sampled
        ids.push(last.token)
        const piece = text.push(last.token)
        const chosen = { text: piece.raw, top: event.sampled.top }
        yield { kind: 'delta', text: piece.text, token: last.token, logprob: last.logprob, chosen }
        if (!piece.stopped) break
        yield { kind: 'end', reason: 'stop', timings: null, ids }
        return
      }
      case 'stopped':
        yield { kind: 'end', reason: 'cancelled', timings: null, ids }
        return
      case 'end': {
        const rest = text.end()
        if (rest.text !== '')
          yield { kind: 'delta', text: rest.text, token: last.token, logprob: last.logprob }
        if (event.error !== null) throw event.error
        const reason = rest.stopped ? 'stop' : event.reason
        yield { kind: 'end', reason, timings: event.timings, ids }
        return
      }
    }
  }
}

/**
 * Before the ring takes the question others may be ahead of it; from then on each token has its own limit.
 * `before`: the event that was read last.
 */
async function nextWithin(
  deps: ClientDeps,
  asking: Asking,
  before: AskingEvent['kind'] | null,
): Promise<AskingEvent> {
  const { ms, error } = limitAfter(before, deps.resumeMs ?? RESUME_MS)
  const cancel = deps.later(ms, () => asking.fail(error(`within ${ms / 1_000} s`)))
  try {
    return await asking.next()
  } finally {
    cancel()
  }
}

type Limit = { readonly ms: number; error(within: string): CrowdError }

function limitAfter(before: AskingEvent['kind'] | null, resumeMs: number): Limit {
  if (before === 'interrupted')
    return { ms: resumeMs, error: (within) => lostError(`it did not come back ${within}`) }
  const isQueued = before === null || before === 'resumed'
  const what = isQueued ? 'the question did not get its turn' : 'no token came'
  return {
    ms: isQueued ? QUEUE_WAIT_MS : SESSION_IDLE_MS,
    error: (within) => new CrowdError('timeout', `${what} ${within}`),
  }
}
