import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { END, ids, LIMIT_MS, MODEL, openApiHost, type ApiHost } from '../support/api-host.ts'
import { eventually } from '../support/eventually.ts'
import { eventsOf, readSse } from '../support/sse.ts'

let api: ApiHost
beforeEach(async () => {
  api = await openApiHost()
})
afterEach(async () => {
  await api.host.close()
})

describe('answers', () => {
  test('a chat, whole', async () => {
    api.answers('Hello')
    const response = await api.chat()
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-crowdinfer-route')).toBe('w0;blocks=0-3, w1;blocks=4-7')
    const body = (await response.json()) as { id: unknown; created: unknown }
    expect(body.id).toMatch(/^chatcmpl-[0-9a-f]{24}$/)
    expect(body.created).toBeTypeOf('number')
    expect(body).toEqual({
      id: body.id,
      object: 'chat.completion',
      created: body.created,
      model: MODEL,
      system_fingerprint: 'crowdinfer-r1',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 },
    })
  })

  test('the end of the window ends the answer with length', async () => {
    api.answers('abcdefghijklmnopqrstuvwxyz', false)
    const body = (await (await api.chat()).json()) as { choices: { finish_reason: string }[] }
    expect(body.choices[0]?.finish_reason).toBe('length')
    expect(body).toMatchObject({ usage: { prompt_tokens: 3, completion_tokens: 13 } })
  })

  test('every choice of every prompt, in its place', async () => {
    api.ring.onPrompt = (session) => session.tokens([...session.prompt.toReversed(), END])
    const body: unknown = await (await api.complete({ prompt: ['ab', 'cd'], n: 3 })).json()
    expect(body).toMatchObject({
      choices: ['ba', 'ba', 'ba', 'dc', 'dc', 'dc'].map((text, index) => ({
        index,
        text,
        finish_reason: 'stop',
      })),
      usage: { prompt_tokens: 4, completion_tokens: 18, total_tokens: 22 },
    })
    const seeds = api.ring.sessions.map(({ order }) => order.sampling.seed)
    expect(new Set(seeds).size).toBe(3)
  })

  test('what the client asks for reaches the stages', async () => {
    api.answers('x')
    await api.complete({
      prompt: [5, 6],
      seed: -1,
      temperature: 0.25,
      top_p: 0.5,
      top_k: 7,
      min_p: 0.125,
      presence_penalty: 1,
      frequency_penalty: -1,
      repetition_penalty: 1.5,
      logit_bias: { '7': -100 },
      max_tokens: 3,
    })
    expect(api.ring.sessions[0]?.prompt).toEqual([5, 6])
    expect(api.ring.sessions[0]?.order).toMatchObject({
      maxTokens: 3,
      sampling: {
        seed: 0xffff_ffff,
        temperature: 0.25,
        topP: 0.5,
        topK: 7,
        minP: 0.125,
        presencePenalty: 1,
        frequencyPenalty: -1,
        repetitionPenalty: 1.5,
        logitBias: [[7, -100]],
      },
    })
  })

  test('a stop string and what follows never leave, in text or log-probabilities', async () => {
    api.ring.onPrompt = (session) => session.tokens(ids('one. STOP two'))
    for (const stream of [false, true]) {
      const text = await (await api.chat({ stop: 'STOP', stream, logprobs: true })).text()
      expect(text).not.toMatch(/"(token|content)":"[STOP]/)
      expect(text).toContain('"finish_reason":"stop"')
    }
    await eventually('no session', LIMIT_MS, () => api.ring.open().every((count) => count === 0))
  })

  test('log-probabilities in both shapes', async () => {
    api.answers('ab')
    const one = { token: 'a', logprob: -1, bytes: [97] }
    expect(await (await api.chat({ logprobs: true, top_logprobs: 2 })).json()).toMatchObject({
      choices: [
        {
          logprobs: {
            content: [
              { ...one, top_logprobs: [one, { token: 'b', logprob: -2, bytes: [98] }] },
              { token: 'b' },
            ],
            refusal: null,
          },
        },
      ],
    })
    expect(await (await api.complete({ logprobs: 1 })).json()).toMatchObject({
      choices: [
        {
          logprobs: {
            tokens: ['a', 'b'],
            token_logprobs: [-1, -1],
            top_logprobs: [{ a: -1 }, { b: -1 }],
            text_offset: [0, 1],
          },
        },
      ],
    })
  })

  test('the model list shows the window', async () => {
    const list = (await (await fetch(`${api.host.origin}/v1/models`)).json()) as { data: unknown[] }
    expect(list).toMatchObject({ object: 'list', data: [{ id: MODEL, context_length: 16 }] })
    const one = await fetch(`${api.host.origin}/v1/models/${MODEL}`)
    expect(await one.json()).toEqual(list.data[0])
  })
})

describe('streams', () => {
  test('headers, a comment and the role are there before the ring says anything', async () => {
    const response = await api.chat({ stream: true, stream_options: { include_usage: true } })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    expect(response.headers.get('cache-control')).toMatch(/no-store/)
    expect(response.headers.get('content-encoding')).toBeNull()
    const sse = readSse(response)
    expect(await sse.next()).toBe(': waiting')
    const role = eventsOf([(await sse.next()) ?? ''])
    expect(role).toMatchObject([
      {
        object: 'chat.completion.chunk',
        usage: null,
        choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
      },
    ])
    expect(await sse.next()).toBe(': route w0;blocks=0-3, w1;blocks=4-7')
    const [session] = await api.sessions(1)
    session?.tokens(ids('a'))
    // Each token is there at once, not with the next one.
    expect(eventsOf([(await sse.next()) ?? ''])).toMatchObject([
      { choices: [{ delta: { content: 'a' }, finish_reason: null }] },
    ])
    session?.tokens([...ids('b'), END])
    const blocks = await sse.rest()
    expect(blocks.at(-1)).toBe('data: [DONE]')
    expect(blocks.some((block) => block.startsWith(': timing first-token;dur='))).toBe(true)
    expect(eventsOf(blocks)).toMatchObject([
      { choices: [{ delta: { content: 'b' }, finish_reason: null }], usage: null },
      { choices: [{ delta: {}, finish_reason: 'stop' }], usage: null },
      { choices: [], usage: { prompt_tokens: 3, completion_tokens: 3, total_tokens: 6 } },
    ])
  })

  test('without the option there is no usage', async () => {
    api.answers('ab')
    const blocks = await readSse(await api.complete({ stream: true })).rest()
    expect(eventsOf(blocks).every((event) => !('usage' in event))).toBe(true)
    expect(eventsOf(blocks).map(({ object }) => object)).toEqual(Array(3).fill('text_completion'))
  })

  test('several choices, each with its own role, offsets and end', async () => {
    api.ring.onPrompt = (session) => session.tokens([...ids('ab'), END])
    const events = eventsOf(
      await readSse(await api.complete({ stream: true, n: 2, logprobs: 0 })).rest(),
    )
    for (const index of [0, 1]) {
      const own = events.flatMap(({ choices }) =>
        // Cast: the shape is what is looked at.
        (
          choices as { index: number; text: string; logprobs: { text_offset: number[] } | null }[]
        ).filter((choice) => choice.index === index),
      )
      expect(own.map(({ text }) => text)).toEqual(['a', 'b', ''])
      expect(own.flatMap(({ logprobs }) => logprobs?.text_offset ?? [])).toEqual([0, 1])
    }
  })

  test('a failure after the beginning is an event, then the end, and no finish reason', async () => {
    const sse = readSse(await api.chat({ stream: true }))
    const [session] = await api.sessions(1)
    session?.tokens(ids('a'))
    api.ring.onPrompt = (again) => again.fail('the device broke')
    session?.fail('the device broke')
    const blocks = await sse.rest()
    expect(blocks.at(-1)).toBe('data: [DONE]')
    const events = eventsOf(blocks)
    expect(events.at(-1)).toMatchObject({
      error: {
        message: expect.stringContaining('the device broke') as string,
        type: 'server_error',
        code: 'stage-failed',
      },
    })
    expect(JSON.stringify(events)).not.toMatch(/"finish_reason":"/)
  })
})

test('a host that stops says so in its streams', async () => {
  const sse = readSse(await api.chat({ stream: true }))
  const [session] = await api.sessions(1)
  session?.tokens(ids('a'))
  await api.host.host.close()
  const blocks = await sse.rest()
  expect(blocks.at(-1)).toBe('data: [DONE]')
  expect(eventsOf(blocks).at(-1)).toMatchObject({ error: { code: 'signaling-closed' } })
})

describe('whoever is gone', () => {
  test('a closed stream frees every stage at once', async () => {
    const gone = new AbortController()
    const sse = readSse(await api.chat({ stream: true }, { signal: gone.signal }))
    const [session] = await api.sessions(1)
    session?.tokens(ids('a'))
    expect(api.ring.open()).toEqual([1, 1])
    expect(api.active()).toBe(1)
    await sse.next()
    gone.abort()
    await eventually('no session', LIMIT_MS, () => api.ring.open().every((count) => count === 0))
    expect(api.active()).toBe(0)
    // Its seat is free again.
    expect(api.host.host.service().snapshot().peers).toHaveLength(2)
  })

  test('so does a closed request that is not streamed, with all its choices', async () => {
    const gone = new AbortController()
    const asked = api.chat({ n: 3 }, { signal: gone.signal })
    await api.sessions(3)
    expect(api.ring.open()).toEqual([3, 3])
    gone.abort()
    await expect(asked).rejects.toThrow()
    await eventually('no session', LIMIT_MS, () => api.ring.open().every((count) => count === 0))
    expect(api.active()).toBe(0)
  })

  test('a queued request is dropped before it begins', async () => {
    const busy = [api.chat(), api.chat(), api.chat(), api.chat()]
    await api.sessions(4)
    const gone = new AbortController()
    const sse = readSse(await api.chat({ stream: true }, { signal: gone.signal }))
    expect(await sse.next()).toBe(': waiting')
    expect(api.active()).toBe(5)
    gone.abort()
    await eventually('one fewer', LIMIT_MS, () => api.active() === 4)
    for (const session of api.ring.sessions) session.tokens([END])
    await Promise.all(busy)
    expect(api.ring.sessions).toHaveLength(4)
  })
})

test('health comes from a token of the ring, and the metrics count it', async () => {
  api.answers('a', false)
  const health = await fetch(`${api.host.origin}/healthz`)
  expect(health.status).toBe(200)
  expect(await health.json()).toMatchObject({ ok: true, reason: '', complete: true, model: MODEL })
  expect(api.ring.sessions).toHaveLength(1)
  const metrics = await fetch(`${api.host.origin}/metrics`)
  expect(metrics.headers.get('content-type')).toMatch(/^text\/plain/)
  expect(await metrics.text()).toContain('crowdinfer_tokens_total{kind="answer"} 1')
  api.answers('a')
  await (await api.chat()).json()
  await (await api.chat({ tools: [{}] })).json()
  await (await api.post('/a/path/of/mine', {})).json()
  const count = (path: string, status: number) =>
    `crowdinfer_api_answers_total{path="${path}",status="${status}"} 1`
  await eventually('the counts', LIMIT_MS, async () => {
    const text = await (await fetch(`${api.host.origin}/metrics`)).text()
    return [
      count('/chat/completions', 200),
      count('/chat/completions', 400),
      count('other', 404),
    ].every((line) => text.includes(line))
  })
  api.ring.leave()
})
