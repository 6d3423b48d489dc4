import type { TokenLogprob } from './logprobs.ts'
import type { Endpoint } from './field.ts'

/** Builds the bodies of answers: whole ones and chunks, of both endpoints. Pure. */

export type AnswerHead = {
  readonly endpoint: Endpoint
  readonly id: string
  /** Seconds since 1970. */
  readonly created: number
  readonly model: string
  readonly fingerprint: string
}

export type ChoiceResult = {
  readonly text: string
  readonly reason: 'stop' | 'length'
  /** null where none were asked for. */
  readonly logprobs: readonly TokenLogprob[] | null
}

export type Usage = {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
}

export function usageOf(promptTokens: number, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
}

/** A whole answer, not streamed. */
export function answerBody(
  head: AnswerHead,
  choices: readonly ChoiceResult[],
  usage: Usage,
): unknown {
  const object = head.endpoint === 'chat' ? 'chat.completion' : 'text_completion'
  return { ...headBody(head, object), choices: choices.map(choiceBody(head.endpoint)), usage }
}

function choiceBody(endpoint: Endpoint): (choice: ChoiceResult, index: number) => unknown {
  return ({ text, reason, logprobs }, index) => ({
    index,
    ...(endpoint === 'chat'
      ? { message: { role: 'assistant', content: text, refusal: null } }
      : { text }),
    logprobs: logprobs === null ? null : logprobsBody(endpoint, logprobs, 0),
    finish_reason: reason,
  })
}

/** One step of a stream. */
export type Delta = {
  readonly index: number
  /** The first chunk of a choice says who speaks. */
  readonly first?: boolean
  readonly text?: string
  readonly reason?: 'stop' | 'length'
  /** null where none were asked for. */
  readonly logprobs: readonly TokenLogprob[] | null
  /** Characters of this choice that were sent before. */
  readonly offset: number
}

/** `usage`: whether the client asked for counts; all chunks but the last then say null. */
export function chunkBody(head: AnswerHead, delta: Delta, usage: boolean): unknown {
  const { index, text, reason } = delta
  const said = head.endpoint === 'chat' ? { delta: chatDelta(delta) } : { text: text ?? '' }
  const logprobs =
    delta.logprobs === null ? null : logprobsBody(head.endpoint, delta.logprobs, delta.offset)
  const choice = { index, ...said, logprobs, finish_reason: reason ?? null }
  return { ...chunkHead(head), choices: [choice], ...(usage ? { usage: null } : {}) }
}

function chatDelta({ first, text }: Delta): unknown {
  if (first === true) return { role: 'assistant', content: '', refusal: null }
  return text === undefined ? {} : { content: text }
}

/** The chunk that `include_usage` asks for. */
export function usageChunk(head: AnswerHead, usage: Usage): unknown {
  return { ...chunkHead(head), choices: [], usage }
}

function chunkHead(head: AnswerHead): object {
  return headBody(head, head.endpoint === 'chat' ? 'chat.completion.chunk' : 'text_completion')
}

function headBody({ id, created, model, fingerprint }: AnswerHead, object: string): object {
  return { id, object, created, model, system_fingerprint: fingerprint }
}

function logprobsBody(
  endpoint: Endpoint,
  entries: readonly TokenLogprob[],
  offset: number,
): unknown {
  return endpoint === 'chat'
    ? { content: entries.map(chatLogprob), refusal: null }
    : legacyLogprobs(entries, offset)
}

function chatLogprob(entry: TokenLogprob): unknown {
  return { ...named(entry), top_logprobs: entry.top.map(named) }
}

function named({ text, logprob }: { readonly text: string; readonly logprob: number }): object {
  return { token: text, logprob: logprob, bytes: bytesOf(text) }
}

/** null where a token is a part of a character: its bytes are not known here. */
function bytesOf(text: string): number[] | null {
  return text.includes('\uFFFD') ? null : [...new TextEncoder().encode(text)]
}

function legacyLogprobs(entries: readonly TokenLogprob[], offset: number): unknown {
  let at = offset
  return {
    tokens: entries.map(({ text }) => text),
    token_logprobs: entries.map(({ logprob }) => logprob),
    top_logprobs: entries.map(topByText),
    text_offset: entries.map(({ text }) => {
      const start = at
      at += text.length
      return start
    }),
  }
}

/** The chosen token is always there; of alternatives with the same text the likelier one. */
function topByText(entry: TokenLogprob): Record<string, number> {
  const byText = new Map<string, number>()
  for (const { text, logprob } of [entry, ...entry.top])
    byText.set(text, Math.max(logprob, byText.get(text) ?? -Infinity))
  return Object.fromEntries(byText)
}
