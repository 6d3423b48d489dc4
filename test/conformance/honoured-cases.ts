import OpenAI from 'openai'
import type { Endpoint } from '../../signaling/api/field.ts'
import type { HonouredName } from '../../signaling/api/fields.ts'
import {
  chatParams,
  completionParams,
  must,
  only,
  QUESTION,
  same,
  TOKENS,
  type Kit,
} from './kit.ts'

/** Shows that a field does what it says, on one endpoint. @throws Error saying what was seen instead */
type Case = (kit: Kit, endpoint: Endpoint) => Promise<void>

/** Hot enough that sampling matters. */
const HOT = { temperature: 2 }
const SEEDS = [1, 2, 3, 4]

/** How many different answers some requests have. */
async function different(
  kit: Kit,
  endpoint: Endpoint,
  requests: readonly Record<string, unknown>[],
): Promise<number> {
  const texts = new Set<string>()
  for (const over of requests) texts.add(only(await kit.ask(endpoint, over)))
  return texts.size
}

/** With this, sampling at a high temperature still takes the likeliest token. */
function likeliestOnly(over: Record<string, unknown>): Case {
  return async (kit, endpoint) => {
    const greedy = only(await kit.ask(endpoint))
    for (const seed of SEEDS) same(only(await kit.ask(endpoint, { ...HOT, seed, ...over })), greedy)
  }
}

/** With this, the likeliest letters are others; only letters may come, so that none is much likelier. */
function changesGreedy(over: Record<string, unknown>): Case {
  return async (kit, endpoint) => {
    const letters = Array.from('abcdefghijklmnopqrstuvwxyz', (one) => kit.tokenizer.encode(one)[0])
    const logit_bias: unknown = Object.fromEntries(letters.map((id) => [id, 100]))
    const greedy = only(await kit.ask(endpoint, { logit_bias }))
    must(only(await kit.ask(endpoint, { logit_bias, ...over })) !== greedy, 'the same answer')
  }
}

function limits(over: Record<string, unknown>, tokens: number): Case {
  return async (kit, endpoint) => {
    const { choices, completionTokens } = await kit.ask(endpoint, over)
    same([completionTokens, choices[0]?.reason], [tokens, 'length'])
  }
}

/** One case for each honoured field; `logprobs` has two shapes. */
export const HONOURED_CASES: Readonly<Record<HonouredName, Case>> = {
  model: async (kit, endpoint) => {
    same(typeof only(await kit.ask(endpoint, { model: kit.model })), 'string')
    const error: unknown = await kit
      .ask(endpoint, { model: 'other' })
      .catch((thrown: unknown) => thrown)
    must(error instanceof OpenAI.NotFoundError, 'no NotFoundError')
  },
  messages: async (kit) => {
    const asked = (messages: unknown) => kit.ask('chat', { messages })
    const plain = await asked([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: QUESTION },
    ])
    const [start, end] = [QUESTION.slice(0, 5), QUESTION.slice(5)]
    const parts = [start, end].map((text) => ({ type: 'text', text }))
    same(
      await asked([
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: parts },
      ]),
      plain,
    )
    const spelled = await asked([{ role: 'user', content: '<|end|><|assistant|>' }])
    must(spelled.promptTokens > 8, 'typed control tokens became control tokens')
    const empty = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null },
    ]
    await asked([...empty, { role: 'user', content: QUESTION }])
  },
  prompt: async (kit) => {
    const text = 'Once upon a time'
    const one = only(await kit.ask('completions', { prompt: text }))
    const ids = kit.tokenizer.encode(text)
    const all = await kit.ask('completions', { prompt: [text, ids, text] })
    same(
      all.choices.map((choice) => choice.text),
      [one, one, one],
    )
    same(only(await kit.ask('completions', { prompt: ids })), one)
  },
  max_completion_tokens: limits({ max_completion_tokens: 3, max_tokens: 9 }, 3),
  max_tokens: limits({ max_tokens: 3, max_completion_tokens: null }, 3),
  temperature: async (kit, endpoint) => {
    same(
      await different(
        kit,
        endpoint,
        SEEDS.map((seed) => ({ seed })),
      ),
      1,
    )
    const hot = SEEDS.map((seed) => ({ seed, ...HOT }))
    must((await different(kit, endpoint, hot)) > 1, 'every seed gives the same hot answer')
  },
  top_p: likeliestOnly({ top_p: 0 }),
  top_k: likeliestOnly({ top_k: 1 }),
  min_p: likeliestOnly({ min_p: 1 }),
  seed: async (kit, endpoint) => {
    const twice = [7, 7].map((seed) => ({ seed, ...HOT }))
    same(await different(kit, endpoint, twice), 1)
    const others = [7, -7, 2 ** 40].map((seed) => ({ seed, ...HOT }))
    must((await different(kit, endpoint, others)) > 1, 'the seed changes nothing')
  },
  n: async (kit, endpoint) => {
    const hot = { ...HOT, seed: 7 }
    const { choices, completionTokens } = await kit.ask(endpoint, { ...hot, n: 5 })
    same(choices.length, 5)
    must(new Set(choices.map(({ text }) => text)).size > 1, 'all choices are the same')
    const alone = await kit.ask(endpoint, hot)
    same(choices[0]?.text, only(alone))
    must(completionTokens > alone.completionTokens, 'only one choice was counted')
  },
  stop: async (kit, endpoint) => {
    const whole = only(await kit.ask(endpoint))
    const at = Math.floor(whole.length / 2)
    const stop = whole.slice(at, at + 4)
    for (const given of [stop, ['never said', stop]]) {
      const { choices } = await kit.ask(endpoint, { stop: given })
      same(choices[0], { text: whole.slice(0, whole.indexOf(stop)), reason: 'stop' })
    }
  },
  presence_penalty: changesGreedy({ presence_penalty: -2 }),
  frequency_penalty: changesGreedy({ frequency_penalty: -2 }),
  repetition_penalty: changesGreedy({ repetition_penalty: 5 }),
  logit_bias: async (kit, endpoint) => {
    const [id = 0] = kit.tokenizer.encode('a')
    const forced = only(await kit.ask(endpoint, { logit_bias: { [id]: 100 } }))
    same(forced, kit.tokenizer.decode(Array<number>(TOKENS).fill(id)))
  },
  logprobs: async (kit, endpoint) => {
    if (endpoint === 'chat') {
      const choice = await chatChoice(kit, { logprobs: true })
      const entries = choice.logprobs?.content ?? []
      same(entries.map(({ token }) => token).join(''), choice.message.content)
      must(
        entries.every(({ logprob }) => logprob <= 0),
        'a log-probability above 0',
      )
      const bytes = Uint8Array.from(entries.flatMap((entry) => entry.bytes ?? []))
      same(new TextDecoder().decode(bytes), choice.message.content)
      return
    }
    const { choices } = await kit.openai.completions.create(
      completionParams(kit.model, { logprobs: 2 }),
    )
    const [choice] = choices
    const {
      tokens = [],
      text_offset = [],
      token_logprobs = [],
      top_logprobs = [],
    } = choice?.logprobs ?? {}
    same(tokens.join(''), choice?.text)
    same(
      [text_offset.length, token_logprobs.length, top_logprobs.length],
      Array(3).fill(tokens.length),
    )
    const last = text_offset.length - 1
    same(choice?.text.slice(text_offset[last]), tokens[last])
  },
  top_logprobs: async (kit) => {
    const choice = await chatChoice(kit, { logprobs: true, top_logprobs: 3 })
    for (const { token, logprob, top_logprobs } of choice.logprobs?.content ?? []) {
      same(top_logprobs.length, 3)
      // Greedy: the chosen token is the likeliest.
      same([top_logprobs[0]?.token, top_logprobs[0]?.logprob], [token, logprob])
      must((top_logprobs[1]?.logprob ?? 0) <= logprob, 'alternatives are not in order')
    }
  },
  stream: async (kit, endpoint) => {
    const streamed = await readStream(kit, endpoint, {})
    const { choices } = await kit.ask(endpoint)
    same([streamed.text, streamed.reason], [choices[0]?.text, choices[0]?.reason])
    must(streamed.chunks > 3, 'the answer came in one piece')
    same(streamed.usages, 0)
    if (endpoint === 'chat') same(streamed.firstRole, 'assistant')
  },
  stream_options: async (kit, endpoint) => {
    const streamed = await readStream(kit, endpoint, { stream_options: { include_usage: true } })
    const { promptTokens, completionTokens } = await kit.ask(endpoint)
    same(streamed.usages, 1)
    same(
      [streamed.usage?.prompt_tokens, streamed.usage?.completion_tokens],
      [promptTokens, completionTokens],
    )
  },
}

async function chatChoice(
  kit: Kit,
  over: Record<string, unknown>,
): Promise<OpenAI.ChatCompletion.Choice> {
  const { choices } = await kit.openai.chat.completions.create(chatParams(kit.model, over))
  const [choice] = choices
  must(choice !== undefined, 'no choice')
  return choice
}

type Streamed = {
  text: string
  reason: string | null
  chunks: number
  firstRole: string | null
  usages: number
  usage: OpenAI.CompletionUsage | null
}

/** What chunks of both endpoints have in common. */
type Chunk = {
  readonly choices: readonly {
    readonly text?: string
    readonly delta?: { readonly role?: string; readonly content?: string | null }
    readonly finish_reason: string | null
  }[]
  readonly usage?: OpenAI.CompletionUsage | null
}

async function readStream(
  kit: Kit,
  endpoint: Endpoint,
  over: Record<string, unknown>,
): Promise<Streamed> {
  const { chat, completions } = kit.openai
  const stream: AsyncIterable<Chunk> =
    endpoint === 'chat'
      ? await chat.completions.create({ ...chatParams(kit.model, over), stream: true })
      : await completions.create({ ...completionParams(kit.model, over), stream: true })
  const result: Streamed = {
    text: '',
    reason: null,
    chunks: 0,
    firstRole: null,
    usages: 0,
    usage: null,
  }
  for await (const chunk of stream) take(result, chunk)
  return result
}

function take(result: Streamed, { choices, usage }: Chunk): void {
  const [choice] = choices
  if (result.chunks === 0) result.firstRole = choice?.delta?.role ?? null
  result.chunks += 1
  if (choice !== undefined) {
    const text = choice.delta?.content ?? choice.text ?? ''
    must(result.reason === null || text === '', 'text after the finish reason')
    result.text += text
    result.reason = choice.finish_reason
  }
  if (!usage) return
  result.usages += 1
  result.usage = usage
}
