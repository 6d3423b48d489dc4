import type { GenerateEvent, GenerateRequest } from '../../sdk/client/client-types.ts'
import { createEventQueue, type EventQueue } from '../../sdk/client/event-queue.ts'
import { REQUESTS_PER_ASKER } from '../../sdk/core/limits.ts'
import { choiceSeed } from '../../sdk/core/sampling/choice-seed.ts'
import type { Client, Tokenizer } from '../../sdk/index.node.ts'
import { createLogprobTrail, type LogprobTrail, type TokenLogprob } from './logprobs.ts'
import type { ApiRequest } from './parse-request.ts'

/** What happens to the choices of a request; `index` counts them over all prompts. */
export type ChoiceEvent =
  /** The ring took it. */
  | { readonly kind: 'accepted'; readonly index: number }
  | {
      readonly kind: 'text'
      readonly index: number
      readonly text: string
      readonly logprobs: readonly TokenLogprob[]
    }
  | {
      readonly kind: 'end'
      readonly index: number
      readonly reason: 'stop' | 'length'
      /** Tokens that the ring chose for it, the end token included. */
      readonly tokens: number
      readonly logprobs: readonly TokenLogprob[]
    }
  | { readonly kind: 'done' }

export type Run = {
  readonly client: Client
  readonly tokenizer: Pick<Tokenizer, 'decode'>
  readonly endIds: ReadonlySet<number>
  readonly request: ApiRequest
  /** Of each prompt, encoded. */
  readonly promptIds: readonly (readonly number[])[]
  readonly seed: number
}

/** How many answers a request has under way at once. */
export function answersAtOnce({ prompts, n }: Pick<ApiRequest, 'prompts' | 'n'>): number {
  return Math.min(prompts.length * n, REQUESTS_PER_ASKER)
}

/**
 * Asks for every choice, several at once, and merges what comes. Nothing is awaited before it begins: what
 * the host refuses at once is known at once. The first failure ends all of them.
 */
export function runChoices(run: Run, signal: AbortSignal): EventQueue<ChoiceEvent> {
  const { request, promptIds } = run
  const queue = createEventQueue<ChoiceEvent>()
  const failed = new AbortController()
  const stop = AbortSignal.any([signal, failed.signal])
  const total = promptIds.length * request.n
  let next = 0

  async function work(): Promise<void> {
    while (next < total && !stop.aborted) {
      const index = next
      next += 1
      await runChoice(run, index, { queue, stop })
    }
  }

  const workers = Array.from({ length: answersAtOnce(request) }, work)
  Promise.all(workers).then(
    () => queue.push({ kind: 'done' }),
    (thrown: unknown) => {
      failed.abort()
      queue.fail(thrown instanceof Error ? thrown : new Error(String(thrown)))
    },
  )
  return queue
}

async function runChoice(
  run: Run,
  index: number,
  out: { readonly queue: EventQueue<ChoiceEvent>; readonly stop: AbortSignal },
): Promise<void> {
  const { request, tokenizer, endIds } = run
  const trail: LogprobTrail | null = request.logprobs
    ? createLogprobTrail({ decode: (ids) => tokenizer.decode(ids), endIds })
    : null
  for await (const event of run.client.generate(generateRequest(run, index), out.stop))
    for (const told of choiceEvents(event, index, trail)) out.queue.push(told)
}

function choiceEvents(
  event: GenerateEvent,
  index: number,
  trail: LogprobTrail | null,
): ChoiceEvent[] {
  switch (event.kind) {
    case 'accepted':
      return [{ kind: 'accepted', index }]
    // The host is this process: it isn't lost before its clients are.
    case 'interrupted':
    case 'resumed':
      return []
    case 'delta': {
      const { text, token, logprob, chosen } = event
      if (chosen !== undefined) trail?.add({ token, logprob, ...chosen })
      const logprobs = trail?.release(text) ?? []
      return text === '' && logprobs.length === 0 ? [] : [{ kind: 'text', index, text, logprobs }]
    }
    case 'end': {
      const { reason, ids } = event
      // A cancelled answer has nobody who reads it; one that failed throws.
      if (reason !== 'stop' && reason !== 'length') return []
      return [{ kind: 'end', index, reason, tokens: ids.length, logprobs: trail?.end() ?? [] }]
    }
  }
}

function generateRequest(run: Run, index: number): GenerateRequest {
  const { request, promptIds, seed } = run
  return {
    promptIds: promptIds[Math.floor(index / request.n)] ?? [],
    ...(request.maxTokens === undefined ? {} : { maxTokens: request.maxTokens }),
    sampling: { ...request.sampling, seed: choiceSeed(seed, index % request.n) },
    stop: request.stop,
  }
}
