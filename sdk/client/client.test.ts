import { expect, test } from 'vitest'
import { createFakeSignaling } from '../../test/support/fake-signaling.ts'
import { createLetterTokenizer, letters } from '../../test/support/letter-tokenizer.ts'
import { CrowdError } from '../core/errors.ts'
import type { ModelId, RequestId, SessionId } from '../core/ids.ts'
import { QUEUE_WAIT_MS, SESSION_IDLE_MS } from '../core/limits.ts'
import type { ServerMessage } from '../protocol/server-to-client.ts'
import { createClient, type ClientDeps } from './client.ts'
import type { GenerateEvent, GenerateRequest } from './client-types.ts'
import type { Tokenizer } from './tokenizer.ts'

const [H, I] = letters('Hi') as [number, number]

function setUp(
  contextLength = 100,
  tokenizer: Tokenizer = createLetterTokenizer(),
  over: Partial<ClientDeps> = {},
) {
  const signaling = createFakeSignaling()
  signaling.open()
  const timers: (() => void)[] = []
  const limits: number[] = []
  let requests = 0
  const client = createClient({
    signaling,
    tokenizer,
    model: 'm' as ModelId,
    revision: 'rev',
    contextLength,
    newRequestId: () => `r${(requests += 1)}` as RequestId,
    later: (ms, task) => {
      timers.push(task)
      limits.push(ms)
      return () => timers.splice(timers.indexOf(task), 1)
    },
    ...over,
  })
  const token = (id: number, position: number): ServerMessage => ({
    kind: 'ask-token',
    request: 'r1' as RequestId,
    position,
    sampled: { token: id, logprob: -0.5, top: [] },
  })
  const end = (reason: 'stop' | 'length'): ServerMessage => ({
    kind: 'ask-end',
    request: 'r1' as RequestId,
    reason,
    timings: null,
  })
  return { signaling, client, timers, limits, token, end }
}

async function collect(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const all: GenerateEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const textOf = (events: GenerateEvent[]) =>
  events.map((event) => (event.kind === 'delta' ? event.text : '')).join('')

/** Starts reading, then delivers. */
async function run(
  request: GenerateRequest,
  deliver: (kit: ReturnType<typeof setUp>) => void,
  signal?: AbortSignal,
) {
  const kit = setUp()
  const events = collect(kit.client.generate(request, signal))
  await Promise.resolve()
  deliver(kit)
  return { ...kit, events: await events }
}

test('an answer is the concatenated deltas, the end token shows nothing', async () => {
  const { events, signaling } = await run(
    { prompt: 'abc', maxTokens: 5 },
    ({ signaling, token, end }) => {
      signaling.deliver({
        kind: 'ask-accepted',
        request: 'r1' as RequestId,
        session: 1 as SessionId,
        stages: [],
      })
      signaling.deliver(token(H, 3))
      signaling.deliver(token(I, 4))
      signaling.deliver(token(2, 5))
      signaling.deliver(end('stop'))
    },
  )
  expect(signaling.sent).toHaveLength(1)
  expect(signaling.sent[0]).toMatchObject({
    kind: 'ask',
    model: 'm',
    revision: 'rev',
    prompt: letters('abc'),
    maxTokens: 5,
    sampling: { temperature: 0 },
  })
  expect(textOf(events)).toBe('Hi')
  expect(events.at(-1)).toMatchObject({ kind: 'end', reason: 'stop', ids: [H, I, 2] })
})

test('a stop string ends the answer before it and cancels the ring', async () => {
  const { events, signaling } = await run({ prompt: 'a', stop: ['. '] }, ({ signaling, token }) => {
    for (const [index, letter] of letters('Yes. No').entries())
      signaling.deliver(token(letter, index + 1))
  })
  expect(textOf(events)).toBe('Yes')
  expect(events.at(-1)).toMatchObject({ kind: 'end', reason: 'stop' })
  expect(signaling.sent.at(-1)).toEqual({ kind: 'cancel', request: 'r1' })
})

test('a prompt of token ids goes out as it is', async () => {
  const { signaling } = await run({ promptIds: [7, 8], maxTokens: 1 }, ({ signaling, end }) => {
    signaling.deliver(end('length'))
  })
  expect(signaling.sent[0]).toMatchObject({ kind: 'ask', prompt: [7, 8] })
})

test('each token comes with its own text and its alternatives, whatever is held back', async () => {
  const { events } = await run({ prompt: 'a', stop: ['xyz'] }, ({ signaling, token, end }) => {
    for (const [index, letter] of letters('wxy').entries())
      signaling.deliver(token(letter, index + 1))
    signaling.deliver(end('length'))
  })
  const deltas = events.filter((event) => event.kind === 'delta')
  expect(deltas.map(({ text }) => text)).toEqual(['w', '', '', 'xy'])
  expect(deltas.map(({ chosen }) => chosen?.text)).toEqual(['w', 'x', 'y', undefined])
  expect(deltas[0]?.chosen?.top).toEqual([])
})

test('an incomplete character that completes a stop string ends the answer there', async () => {
  const broken = {
    ...createLetterTokenizer(),
    decode: (ids: readonly number[]) => '\uFFFD'.repeat(ids.length),
  }
  const kit = setUp(100, broken)
  const events = collect(kit.client.generate({ prompt: 'a', stop: ['\uFFFD'] }))
  await Promise.resolve()
  kit.signaling.deliver(kit.token(5, 1))
  kit.signaling.deliver(kit.end('length'))
  expect(textOf(await events)).toBe('')
  expect((await events).at(-1)).toMatchObject({ kind: 'end', reason: 'stop' })
})

test('stopping by hand ends with what there is and cancels the ring', async () => {
  const abort = new AbortController()
  const { events, signaling } = await run(
    { prompt: 'a' },
    ({ signaling, token }) => {
      signaling.deliver(token(H, 1))
      abort.abort()
    },
    abort.signal,
  )
  expect(textOf(events)).toBe('H')
  expect(events.at(-1)).toMatchObject({ kind: 'end', reason: 'cancelled' })
  expect(signaling.sent.at(-1)).toEqual({ kind: 'cancel', request: 'r1' })
})

test('a reader that walks away cancels the ring', async () => {
  const { client, signaling, token } = setUp()
  for await (const event of (() => {
    const events = client.generate({ prompt: 'a' })
    queueMicrotask(() => signaling.deliver(token(H, 1)))
    return events
  })()) {
    if (event.kind === 'delta') break
  }
  expect(signaling.sent.at(-1)).toEqual({ kind: 'cancel', request: 'r1' })
})

test('a prompt beyond the context is refused with the numbers, before anything is sent', async () => {
  const { client, signaling } = setUp(4)
  await expect(collect(client.generate({ prompt: 'abcd' }))).rejects.toThrow(
    '4 tokens and the model holds 4',
  )
  expect(signaling.sent).toEqual([])
})

test.each([
  [{}, 'either messages or a prompt'],
  [{ prompt: 'a', messages: [] }, 'either messages or a prompt'],
  [{ prompt: 'a', promptIds: [1] }, 'one only'],
  [{ prompt: '' }, 'empty'],
  [{ prompt: 'a', stop: Array.from({ length: 17 }, () => 'x') }, '16 stop strings'],
])('a bad request is refused: %o', async (request, why) => {
  await expect(collect(setUp().client.generate(request))).rejects.toThrow(why)
})

test('the host’s error reaches the reader with its code, after the text that came before', async () => {
  const kit = setUp()
  const seen: GenerateEvent[] = []
  const reading = (async () => {
    for await (const event of kit.client.generate({ prompt: 'a' })) seen.push(event)
  })()
  await Promise.resolve()
  kit.signaling.deliver(kit.token(H, 1))
  kit.signaling.deliver({
    kind: 'ask-end',
    request: 'r1' as RequestId,
    reason: 'error',
    timings: null,
    error: { code: 'stage-lost', message: 'a device left' },
  })
  await expect(reading).rejects.toMatchObject({ code: 'stage-lost' })
  expect(textOf(seen)).toBe('H')
})

test('a lost connection ends the wait where a client does not wait for its host', async () => {
  const kit = setUp(100, createLetterTokenizer(), { resumeMs: 0 })
  const reading = collect(kit.client.generate({ prompt: 'a' }))
  await Promise.resolve()
  kit.signaling.setState({ kind: 'lost', reason: 'transport close' })
  await expect(reading).rejects.toMatchObject({ code: 'signaling-closed' })
})

test('silence has a limit', async () => {
  const kit = setUp()
  const reading = collect(kit.client.generate({ prompt: 'a' }))
  await Promise.resolve()
  kit.timers[0]?.()
  await expect(reading).rejects.toMatchObject({ code: 'timeout' })
  expect(kit.signaling.sent.at(-1)).toEqual({ kind: 'cancel', request: 'r1' })
})

test('a queued question waits longer than a token may take', async () => {
  const kit = setUp()
  const reading = collect(kit.client.generate({ prompt: 'a' }))
  await Promise.resolve()
  expect(kit.limits).toEqual([QUEUE_WAIT_MS])
  kit.signaling.deliver({
    kind: 'ask-accepted',
    request: 'r1' as RequestId,
    session: 1 as SessionId,
    stages: [],
  })
  await expect.poll(() => kit.limits).toEqual([QUEUE_WAIT_MS, SESSION_IDLE_MS])
  kit.signaling.deliver(kit.token(H, 1))
  await expect.poll(() => kit.limits).toHaveLength(3)
  expect(kit.limits[2]).toBe(SESSION_IDLE_MS)
  kit.signaling.deliver(kit.end('stop'))
  await reading
})

test('nothing can be asked while the host is away', async () => {
  const kit = setUp()
  kit.signaling.setState({ kind: 'lost', reason: 'cable' })
  await expect(collect(kit.client.generate({ prompt: 'a' }))).rejects.toBeInstanceOf(CrowdError)
})
