import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { goldenOf } from '../support/golden.ts'
import { startNodeRing, type NodeRing } from '../support/node-ring.ts'

const MODEL = 'crowdtalk-0.3m'
/** The model's end token. */
const END = 1

describe('the official client against a real ring', () => {
  let ring: NodeRing
  let openai: OpenAI
  beforeAll(async () => {
    ring = await startNodeRing(2)
    const apiKey = ring.started.secret ?? ''
    openai = new OpenAI({ baseURL: `${ring.origin}/v1`, apiKey, maxRetries: 0 })
  })
  afterAll(async () => {
    await ring.close()
  })

  const chats = goldenOf(MODEL).cases.filter(({ messages }) => messages !== undefined)

  test('a greedy chat is the unsplit model’s text, with honest counts', async () => {
    expect(chats.length).toBeGreaterThan(0)
    for (const { messages, promptIds, ids, text } of chats) {
      const { data, response } = await openai.chat.completions
        .create({
          model: MODEL,
          messages: [...(messages ?? [])],
          temperature: 0,
          max_completion_tokens: ids.length,
        })
        .withResponse()
      expect(data.choices[0]?.message.content).toBe(text)
      expect(data.choices[0]?.finish_reason).toBe(ids.at(-1) === END ? 'stop' : 'length')
      expect(data.usage).toEqual({
        prompt_tokens: promptIds.length,
        completion_tokens: ids.length,
        total_tokens: promptIds.length + ids.length,
      })
      expect(response.headers.get('x-crowdinfer-route')).toMatch(
        /^worker-[12];blocks=0-\d+, worker-[12];blocks=\d+-5$/,
      )
      expect(response.headers.get('server-timing')).toMatch(/first-token;dur=.*stage-2;dur=/)
    }
  })

  test('a stream joins up to the same text', async () => {
    const { messages, text, ids } = chats[0] ?? { messages: [], text: '', ids: [] }
    const stream = await openai.chat.completions.create({
      model: MODEL,
      messages: [...(messages ?? [])],
      temperature: 0,
      max_completion_tokens: ids.length,
      stream: true,
    })
    let joined = ''
    for await (const chunk of stream) joined += chunk.choices[0]?.delta.content ?? ''
    expect(joined).toBe(text)
  })
})
