import OpenAI from 'openai'
import { createApiKeys } from '../../signaling/api-keys.ts'
import { eventually } from '../support/eventually.ts'
import { chatParams, must, same, type Kit } from './kit.ts'

/** What no single field shows; in this order, since the last ones take the ring apart. */
type Behaviour = {
  readonly name: string
  run(kit: Kit): Promise<void>
}

const LIMIT_MS = 10_000

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
}

/** Does something `most` times at most, many at once, until it gives something. */
async function firstOf<T>(most: number, make: () => Promise<T | null>): Promise<T | null> {
  let left = most
  let found: T | null = null
  const work = async (): Promise<void> => {
    while (found === null && left > 0) {
      left -= 1
      found = (await make()) ?? found
    }
  }
  await Promise.all(Array.from({ length: 50 }, work))
  return found
}

const sessions = ({ ring }: Kit): number =>
  ring.workers.reduce((sum, worker) => sum + worker.snapshot().sessions, 0)

const active = ({ ring }: Kit): number =>
  ring.host
    .service()
    .snapshot()
    .requests.filter(({ state }) => ['queued', 'opening', 'running'].includes(state)).length

/** Nothing is computed any more, on any device. */
async function becomesIdle(kit: Kit): Promise<void> {
  await eventually('every device idle', LIMIT_MS, () => sessions(kit) === 0 && active(kit) === 0)
}

const LONG = { max_completion_tokens: 400, logit_bias: { '1': -100 } }

export const BEHAVIOURS: readonly Behaviour[] = [
  {
    name: 'models.list',
    async run({ openai, model }) {
      const ids: string[] = []
      for await (const { id, object } of openai.models.list()) ids.push(`${object} ${id}`)
      same(ids, [`model ${model}`])
    },
  },
  {
    name: 'models.retrieve',
    async run({ openai, model }) {
      same((await openai.models.retrieve(model)).id, model)
      const error = await errorOf(openai.models.retrieve('other'))
      must(error instanceof OpenAI.NotFoundError && error.code === 'model_not_found', String(error))
    },
  },
  {
    name: 'stream helper',
    async run({ openai, model }) {
      const { messages } = chatParams(model)
      const runner = openai.chat.completions.stream({ model, messages, temperature: 0 })
      const final = await runner.finalChatCompletion()
      must((final.choices[0]?.message.content ?? '') !== '', 'no content')
    },
  },
  {
    name: 'request id and route',
    async run({ openai, model }) {
      const { data, response, request_id } = await openai.chat.completions
        .create(chatParams(model))
        .withResponse()
      same(request_id, data.id)
      must(
        /^worker-\d;blocks=0-/.test(response.headers.get('x-crowdinfer-route') ?? ''),
        'no route',
      )
      must(/hop;dur=/.test(response.headers.get('server-timing') ?? ''), 'no time per hop')
    },
  },
  {
    name: 'abort of a stream',
    async run(kit) {
      const params = { ...chatParams(kit.model, LONG), stream: true as const }
      const stream = await kit.openai.chat.completions.create(params)
      let chunks = 0
      for await (const chunk of stream) {
        chunks += chunk.choices.length
        if (chunks < 4) continue
        must(sessions(kit) > 0, 'nothing was being computed')
        stream.controller.abort()
      }
      await becomesIdle(kit)
      const { laps } = kit.ring.host.service().state()
      await kit.ask('chat', { max_completion_tokens: 1 })
      same(kit.ring.host.service().state().laps, laps + 1)
    },
  },
  {
    name: 'abort of a whole answer',
    async run(kit) {
      const abort = new AbortController()
      const asked = kit.openai.chat.completions.create(chatParams(kit.model, LONG), {
        signal: abort.signal,
      })
      const failed = errorOf(asked)
      await eventually('a session', LIMIT_MS, () => sessions(kit) > 0)
      abort.abort()
      must((await failed) instanceof OpenAI.APIUserAbortError, 'not aborted')
      await becomesIdle(kit)
    },
  },
  {
    name: 'prompt too long',
    async run({ openai, model }) {
      for (const [times, stream] of [
        [400, false],
        [400, true],
        // Megabytes are refused as fast, and the ring doesn't notice.
        [200_000, false],
      ] as const) {
        const messages = [{ role: 'user', content: 'a b c d '.repeat(times) }]
        const params = { ...chatParams(model, { messages }), stream }
        const error = await errorOf(openai.chat.completions.create(params))
        must(error instanceof OpenAI.BadRequestError, String(error))
        same(error.code, 'context_length_exceeded')
        must(/\d{3,} tokens.* 512/.test(error.message), error.message)
      }
    },
  },
  {
    name: 'unknown path',
    async run({ openai }) {
      const error = await errorOf(openai.embeddings.create({ model: 'x', input: 'x' }))
      must(error instanceof OpenAI.NotFoundError && error.code === 'unknown_url', String(error))
    },
  },
  {
    name: 'keys',
    async run(kit) {
      const keys = createApiKeys(kit.ring.dataDir)
      const { id, key } = await keys.add('suite')
      const withKey = (apiKey: string) =>
        new OpenAI({ baseURL: `${kit.ring.origin}/v1`, apiKey, maxRetries: 0 })
      await eventually('the key', LIMIT_MS, async () => {
        const error = await errorOf(withKey('wrong').models.list())
        return error instanceof OpenAI.AuthenticationError && error.code === 'invalid_api_key'
      })
      same((await withKey(key).models.list()).data.length, 1)
      // Faster than one caller may: the limit is the key's own.
      const limited = await firstOf(3_000, async () => {
        const error = await errorOf(withKey(key).models.list())
        return error instanceof OpenAI.RateLimitError ? error : null
      })
      must(limited !== null, 'no limit')
      must(Number(limited.headers.get('retry-after')) >= 1, 'no Retry-After')
      await keys.revoke(id)
      await eventually('no key', LIMIT_MS, async () => {
        return (await errorOf(withKey('none').models.list())) === null
      })
    },
  },
  {
    name: 'error in a stream',
    async run(kit) {
      const params = { ...chatParams(kit.model, LONG), stream: true as const }
      const stream = await kit.openai.chat.completions.create(params)
      const reasons: unknown[] = []
      const leaving: Promise<void>[] = []
      const error = await errorOf(
        (async () => {
          for await (const { choices } of stream) {
            reasons.push(choices[0]?.finish_reason)
            if (reasons.length === 4)
              leaving.push(...kit.ring.workers.slice(1).map((one) => one.leave()))
          }
        })(),
      )
      await Promise.all(leaving)
      must(error instanceof OpenAI.APIError && error.code === 'stage-lost', String(error))
      must(
        reasons.every((reason) => reason === null),
        'a finish reason for an answer that failed',
      )
    },
  },
  {
    name: 'incomplete ring',
    async run({ openai, model }) {
      const error = await errorOf(
        openai.chat.completions.create(chatParams(model), { maxRetries: 0 }),
      )
      must(error instanceof OpenAI.InternalServerError, String(error))
      same([error.status, error.code], [503, 'ring-incomplete'])
      must(/have no worker/.test(error.message), error.message)
      must(Number(error.headers.get('retry-after')) >= 1, 'no Retry-After')
    },
  },
]
