import { describe, expect, test } from 'vitest'
import type { RequestId } from '../sdk/core/ids.ts'
import {
  REPAIR_MS,
  REQUESTS_PER_ASKER,
  REQUESTS_QUEUED_MAX,
  RESUMED_QUEUED_MAX,
  RETURN_MS,
  SESSIONS_AT_ONCE,
} from '../sdk/core/limits.ts'
import { GREEDY } from '../sdk/core/sampling/params.ts'
import { at, fakeSwarm, type FakePeer } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = { ...modelOf(), contextLength: 512 }
const [EOS] = model.eosTokenIds
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })
/** Longer than a text in common must be. */
const PROMPT = Array.from({ length: 20 }, (_, index) => index + 1)

function setUp(over = {}) {
  const swarm = fakeSwarm(model, 2, over)
  const workers = [swarm.worker('w0'), swarm.worker('w1')]
  return { swarm, workers, asker: swarm.join('asker', 'asker'), last: at(workers, 1) }
}

/** The last stage of the newest session chooses a token. */
function choose(last: FakePeer, position: number, token: number): void {
  const { session, epoch } = last.last('session-open')
  last.say({ kind: 'session-token', session, epoch, position, sampled: sampled(token) })
}

describe('an answer whose asker lost the host', () => {
  test('RS1 ends as if cancelled, and its caches are kept', () => {
    const { swarm, workers, asker, last } = setUp()
    swarm.ask(asker, 'r1', { prompt: PROMPT, maxTokens: 10 })
    choose(last, 20, 50)
    asker.handle.closed()
    for (const worker of workers) expect(worker.last('session-close').retain).toBe(true)
    expect(swarm.service.snapshot().requests).toMatchObject([{ state: 'cancelled' }])
  })

  test('RS1 a newer connection of the same asker ends what the former one asked', () => {
    const { swarm, workers, asker, last } = setUp()
    swarm.ask(asker, 'r1', { prompt: PROMPT, maxTokens: 10 })
    choose(last, 20, 50)
    const again = swarm.join('asker', 'asker')
    for (const worker of workers) expect(worker.last('session-close').retain).toBe(true)
    choose(last, 21, 51)
    expect([again.all('ask-token'), again.all('ask-end')]).toEqual([[], []])
  })

  test('RS2 is gone on with from its last row, where the stages are still there', () => {
    const { swarm, asker, last, workers } = setUp()
    const sampling = { ...GREEDY, temperature: 1, seed: 9, frequencyPenalty: 0.5, logitBias: [] }
    swarm.ask(asker, 'r1', { prompt: PROMPT, maxTokens: 5, sampling })
    const { session } = last.last('session-open')
    for (const [index, token] of [50, 51, 52].entries()) choose(last, 20 + index, token)
    asker.handle.closed()
    const again = swarm.join('asker', 'asker')
    // The third token was on its way to the socket that broke.
    swarm.ask(again, 'r2', { prompt: PROMPT, answered: [50, 51], maxTokens: 5, sampling })
    expect(last.last('session-open')).toMatchObject({
      session,
      epoch: 2,
      valid: 21,
      promptLength: 20,
      answered: 2,
      maxTokens: 5,
      sampling,
      history: [...PROMPT, 50, 51],
    })
    expect(again.last('ask-accepted')).toMatchObject({ request: 'r2', session })
    swarm.pass(100)
    // These workers keep nothing: what they are told to compute is the whole text.
    expect(at(workers, 0).last('session-start').prompt).toEqual([...PROMPT, 50, 51])
    expect(again.all('ask-token')).toEqual([])
    for (const [index, token] of [52, 53, 54].entries()) choose(last, 22 + index, token)
    expect(again.all('ask-token').map(({ position }) => position)).toEqual([22, 23, 24])
    // Five in all.
    choose(last, 25, 55)
    expect(again.all('ask-token')).toHaveLength(3)
    expect(swarm.service.state().requests.get('asker/r2')?.firstTokenMs).toBe(null)
  })

  test('RS2 a host that knows nothing of it has everything computed, and chooses the same positions', () => {
    const { swarm, asker, last, workers } = setUp()
    swarm.ask(asker, 'r1', { prompt: [5, 6, 7], answered: [11, 12], maxTokens: 4 })
    const order = last.last('session-open')
    expect(order).toMatchObject({ epoch: 1, valid: 0, promptLength: 3, answered: 2, maxTokens: 4 })
    expect(at(workers, 0).last('session-start').prompt).toEqual([5, 6, 7, 11, 12])
    choose(last, 5, 13)
    expect(asker.all('ask-token').map(({ position }) => position)).toEqual([5])
  })

  test.each([
    ['an end token', { answered: [11, EOS ?? 0] }],
    ['an end token of the asker’s', { answered: [11, 40], stopIds: [40] }],
    ['an end token at its limit', { answered: [11, EOS ?? 0], maxTokens: 2 }],
  ])('RS2 ends at once where the last token was %s', (_, over) => {
    const { swarm, asker, workers } = setUp()
    swarm.ask(asker, 'r1', over)
    expect(asker.last('ask-end')).toMatchObject({ request: 'r1', reason: 'stop', timings: null })
    expect(workers.flatMap((worker) => worker.all('session-open'))).toEqual([])
  })

  test.each([
    ['is as long as it was to be', { answered: [11, 12], maxTokens: 2 }, 'room for 2'],
    ['fills the context', { prompt: PROMPT, answered: Array(492).fill(9), maxTokens: 900 }, '492'],
    ['has a token of another model', { answered: [11, 1_000_000] }, 'token 1000000 is not in'],
  ])('RS2 is refused where it %s', (_, over, why) => {
    const { swarm, asker } = setUp()
    swarm.ask(asker, 'r1', over)
    const { error } = asker.last('ask-end')
    expect(error?.code).toBe('bad-request')
    expect(error?.message).toContain(why)
    expect(swarm.service.state().requests.size).toBe(0)
  })

  test('RS2 of another revision of the model is refused', () => {
    const { swarm, asker } = setUp()
    swarm.ask(asker, 'r1', { answered: [11], revision: 'r0' })
    expect(asker.last('ask-end').error?.code).toBe('model-changed')
  })
})

describe('RS3: a host that was started anew', () => {
  test('RS3 lets it wait for devices that come back', () => {
    const swarm = fakeSwarm(model, 2)
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1', { answered: [11] })
    swarm.pass(RETURN_MS - 1_000)
    expect(asker.all('ask-end')).toEqual([])
    const workers = [swarm.worker('w0'), swarm.worker('w1')]
    swarm.pass(200)
    expect(asker.all('ask-accepted')).toHaveLength(1)
    expect(at(workers, 1).last('session-open')).toMatchObject({ answered: 1 })
  })

  test('RS3 lets a question wait that had no token yet', () => {
    const swarm = fakeSwarm(model, 2)
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1', { answered: [] })
    swarm.ask(asker, 'r2')
    expect(asker.all('ask-end').map(({ request }) => request)).toEqual(['r2'])
    for (const name of ['w0', 'w1']) swarm.worker(name)
    swarm.pass(200)
    expect(asker.last('ask-accepted').request).toBe('r1')
  })

  test('RS3 ends it with the reason where nobody comes', () => {
    const swarm = fakeSwarm(model, 2)
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1', { answered: [11] })
    swarm.pass(RETURN_MS)
    expect(asker.all('ask-end')).toEqual([])
    swarm.pass(500)
    expect(asker.last('ask-end')).toMatchObject({ error: { code: 'ring-incomplete' } })
  })

  test('RS3 waits longer for devices that load', () => {
    const swarm = fakeSwarm(model, 2)
    const asker = swarm.join('asker', 'asker')
    for (const name of ['w0', 'w1']) swarm.worker(name, 1e9, ['assign'])
    swarm.ask(asker, 'r1', { answered: [11] })
    swarm.pass(REPAIR_MS)
    expect(asker.all('ask-end')).toEqual([])
    swarm.pass(500)
    expect(asker.last('ask-end')).toMatchObject({ error: { code: 'ring-incomplete' } })
  })
})

test('RS3 goes before questions of which nothing was answered, and is not counted with them', () => {
  const { swarm, asker, last } = setUp()
  const askers = Array.from({ length: 24 }, (_, index) => swarm.join(`a${index}`, 'asker'))
  const full = SESSIONS_AT_ONCE + REQUESTS_QUEUED_MAX
  for (let index = 0; index < full; index += 1)
    swarm.ask(at(askers, Math.floor(index / REQUESTS_PER_ASKER)), `q${index}`)
  swarm.ask(asker, 'new')
  expect(asker.last('ask-end').error?.code).toBe('too-many-requests')
  swarm.ask(asker, 'again', { answered: [11] })
  expect(asker.all('ask-end')).toHaveLength(1)
  at(askers, 0).say({ kind: 'cancel', request: 'q0' as RequestId })
  swarm.pass(100)
  expect(asker.last('ask-accepted').request).toBe('again')
  expect(last.last('session-open').answered).toBe(1)
  for (let index = 0; index < RESUMED_QUEUED_MAX; index += 1) {
    const other = at(askers, 6 + Math.floor(index / REQUESTS_PER_ASKER))
    swarm.ask(other, `again${index}`, { answered: [11] })
    expect(other.all('ask-end')).toEqual([])
  }
  const late = at(askers, 6 + RESUMED_QUEUED_MAX / REQUESTS_PER_ASKER)
  swarm.ask(late, 'last', { answered: [11] })
  expect(late.last('ask-end').error?.code).toBe('too-many-requests')
  // Nobody may be kept waiting for good.
  swarm.pass(REPAIR_MS)
  at(askers, 0).say({ kind: 'cancel', request: 'q1' as RequestId })
  swarm.pass(100)
  expect(at(askers, 1).last('ask-accepted').request).toBe('q4')
})
