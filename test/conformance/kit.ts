import OpenAI from 'openai'
import type { Tokenizer } from '../../sdk/client/tokenizer.ts'
import { openTokenizer } from '../../sdk/index.node.ts'
import type { Endpoint } from '../../signaling/api/field.ts'
import { startNodeRing, type NodeRing } from '../support/node-ring.ts'

/** One answer, of either endpoint. */
export type Answer = { readonly text: string; readonly reason: string }
export type Answers = {
  readonly choices: readonly Answer[]
  readonly promptTokens: number
  readonly completionTokens: number
}

/** The official client, a real ring behind it, and one question for each endpoint. */
export type Kit = {
  readonly openai: OpenAI
  readonly ring: NodeRing
  readonly model: string
  readonly tokenizer: Tokenizer
  /** Asks the endpoint's question, greedily and for a few tokens unless `over` says otherwise. */
  ask(endpoint: Endpoint, over?: Record<string, unknown>): Promise<Answers>
  close(): Promise<void>
}

export const QUESTION = 'What is a ring?'
export const TOKENS = 24

type ChatParams = OpenAI.ChatCompletionCreateParamsNonStreaming
type CompletionParams = OpenAI.CompletionCreateParamsNonStreaming

export function chatParams(model: string, over: Record<string, unknown> = {}): ChatParams {
  const messages = [{ role: 'user' as const, content: QUESTION }]
  return { model, messages, temperature: 0, max_completion_tokens: TOKENS, ...over }
}

export function completionParams(
  model: string,
  over: Record<string, unknown> = {},
): CompletionParams {
  return { model, prompt: 'Once upon a time', temperature: 0, max_tokens: TOKENS, ...over }
}

export async function openKit(): Promise<Kit> {
  const ring = await startNodeRing(2)
  const { model } = ring.started
  const apiKey = ring.started.secret ?? ''
  // The suite asks faster than one caller may: the client waits as Retry-After says.
  const openai = new OpenAI({ baseURL: `${ring.origin}/v1`, apiKey, maxRetries: 8 })
  const id = model.manifest.id

  return {
    openai,
    ring,
    model: id,
    tokenizer: await openTokenizer(model.directory, model.manifest),
    async ask(endpoint, over = {}) {
      if (endpoint === 'chat') {
        const { choices, usage } = await openai.chat.completions.create(chatParams(id, over))
        return {
          choices: choices.map(({ message, finish_reason }) => ({
            text: message.content ?? '',
            reason: finish_reason,
          })),
          ...counts(usage),
        }
      }
      const { choices, usage } = await openai.completions.create(completionParams(id, over))
      return {
        choices: choices.map(({ text, finish_reason }) => ({ text, reason: finish_reason })),
        ...counts(usage),
      }
    },
    close: () => ring.close(),
  }
}

function counts(
  usage: OpenAI.CompletionUsage | undefined,
): Pick<Answers, 'promptTokens' | 'completionTokens'> {
  return {
    promptTokens: usage?.prompt_tokens ?? NaN,
    completionTokens: usage?.completion_tokens ?? NaN,
  }
}

/** @throws Error with `what` */
export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

export function same(got: unknown, wanted: unknown): void {
  const [left, right] = [JSON.stringify(got), JSON.stringify(wanted)]
  must(left === right, `got ${left}, wanted ${right}`)
}

/** The text of the only choice. */
export function only({ choices }: Answers): string {
  must(choices.length === 1, `${choices.length} choices instead of one`)
  return choices[0]?.text ?? ''
}
