import type { ChatMessage } from '../../sdk/client/tokenizer.ts'
import type { SamplingDefaults } from '../../sdk/core/sampling/generation-config.ts'
import type { SamplingParams } from '../../sdk/core/sampling/params.ts'
import { isDeepStrictEqual } from 'node:util'
import { FieldError } from './api-error.ts'
import { CHOICES_MAX, COMPLETION_TOKENS_DEFAULT, STOP_MAX_CHARS, STOPS_MAX } from './api-limits.ts'
import type { Endpoint } from './field.ts'
import { fieldsOf, type HonouredName } from './fields.ts'
import { readMessages } from './read-messages.ts'
import { readSampling, type Take } from './read-sampling.ts'
import { readPrompts, type TextPrompt } from './read-prompts.ts'
import { isObject, readBoolean, readText, refuse, wholeFrom, type Reader } from './read-value.ts'

export type Prompt = TextPrompt | { readonly messages: readonly ChatMessage[] }

/** A checked request: everything that the answer depends on, and nothing else. */
export type ApiRequest = {
  readonly endpoint: Endpoint
  readonly model: string
  /** One for chat. */
  readonly prompts: readonly Prompt[]
  /** Choices for each prompt. */
  readonly n: number
  /** undefined = up to the end of the context. */
  readonly maxTokens: number | undefined
  readonly sampling: SamplingParams
  /** Whether the client named the seed; otherwise `sampling.seed` is 0 and means nothing. */
  readonly seeded: boolean
  readonly stop: readonly string[]
  readonly stream: boolean
  readonly includeUsage: boolean
  readonly logprobs: boolean
}

/**
 * A request body as the ring can serve it. Null counts as absent, unknown fields are ignored.
 *
 *     parseRequest('chat', { model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
 *
 * @param defaults the model's own settings, for fields that are absent
 * @throws FieldError naming the field
 */
export function parseRequest(
  endpoint: Endpoint,
  body: unknown,
  defaults: SamplingDefaults = {},
): ApiRequest {
  if (!isObject(body)) throw new FieldError('body', 'the request must be a JSON object')
  refuseUnsupported(endpoint, body)
  const take = taker(body)
  const n = take('n', wholeFrom(1, CHOICES_MAX)) ?? 1
  const prompts = promptsOf(endpoint, body)
  if (prompts.length * n > CHOICES_MAX)
    refuse('n', `such that prompts × n is at most ${CHOICES_MAX}`, n)
  const stream = take('stream', readBoolean) ?? false
  const usage = take('stream_options', readUsageOption) ?? false
  const logprobs = logprobsOf(endpoint, body)
  return {
    endpoint,
    model: readText(required(body, 'model'), 'model'),
    prompts,
    n,
    maxTokens: maxTokensOf(endpoint, take),
    sampling: { ...readSampling(take, defaults), topLogprobs: logprobs ?? 0 },
    seeded: (body['seed'] ?? null) !== null,
    stop: take('stop', readStops) ?? [],
    stream,
    includeUsage: stream && usage,
    logprobs: logprobs !== null,
  }
}

type Body = Readonly<Record<string, unknown>>

function taker(body: Body): Take {
  return (name, reader) => {
    const value = body[name]
    return value === undefined || value === null ? undefined : reader(value, name)
  }
}

function refuseUnsupported(endpoint: Endpoint, body: Body): void {
  for (const field of fieldsOf(endpoint)) {
    const value = body[field.name]
    if (field.treatment !== 'refused' || value === undefined || value === null) continue
    if (field.neutral.some((neutral) => isDeepStrictEqual(neutral, value))) continue
    throw new FieldError(
      field.name,
      `${field.name} is not supported: ${field.note}`,
      'unsupported_parameter',
    )
  }
}

function required(body: Body, name: HonouredName): unknown {
  const value = body[name]
  if (value === undefined || value === null)
    throw new FieldError(name, `${name} is missing`, 'missing_required_parameter')
  return value
}

function promptsOf(endpoint: Endpoint, body: Body): Prompt[] {
  if (endpoint === 'chat')
    return [{ messages: readMessages(required(body, 'messages'), 'messages') }]
  return readPrompts(required(body, 'prompt'), 'prompt')
}

function maxTokensOf(endpoint: Endpoint, take: Take): number | undefined {
  const reader = wholeFrom(1, Number.MAX_SAFE_INTEGER)
  const older = take('max_tokens', reader)
  if (endpoint === 'completions') return older ?? COMPLETION_TOKENS_DEFAULT
  return take('max_completion_tokens', reader) ?? older
}

/** Alternatives for each token, or null where no log-probabilities are wanted. */
function logprobsOf(endpoint: Endpoint, body: Body): number | null {
  const wanted = body['logprobs'] ?? null
  if (endpoint === 'completions')
    return wanted === null ? null : wholeFrom(0, 20)(wanted, 'logprobs')
  const isOn = wanted !== null && readBoolean(wanted, 'logprobs')
  const top = body['top_logprobs'] ?? null
  const count = top === null ? 0 : wholeFrom(0, 20)(top, 'top_logprobs')
  if (count > 0 && !isOn) return refuse('top_logprobs', 'used together with logprobs: true', top)
  return isOn ? count : null
}

const readStops: Reader<string[]> = (value, param) => {
  const list: unknown[] = Array.isArray(value) ? value : [value]
  if (list.length > STOPS_MAX) return refuse(param, `at most ${STOPS_MAX} texts`, list.length)
  const stops = list.map((stop, index) =>
    typeof stop === 'string' && stop.length <= STOP_MAX_CHARS
      ? stop
      : refuse(
          Array.isArray(value) ? `${param}[${index}]` : param,
          `a text of at most ${STOP_MAX_CHARS} characters`,
          stop,
        ),
  )
  return stops.filter((stop) => stop !== '')
}

const readUsageOption: Reader<boolean> = (value, param) => {
  if (!isObject(value)) return refuse(param, 'an object', value)
  const wanted = value['include_usage'] ?? null
  return wanted !== null && readBoolean(wanted, `${param}.include_usage`)
}
