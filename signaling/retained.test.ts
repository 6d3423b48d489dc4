import { expect, test } from 'vitest'
import type { RequestId } from '../sdk/core/ids.ts'
import { RETAIN_MS, RETAINED_PER_STAGE } from '../sdk/core/limits.ts'
import { makeRoom } from '../sdk/core/swarm/admission.ts'
import { createStageSizes } from '../sdk/core/plan/memory.ts'
import { at, fakeSwarm, type FakePeer, type FakeSwarm } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = { ...modelOf(), contextLength: 512 }
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })
/** Longer than a text in common must be. */
const PROMPT = Array.from({ length: 20 }, (_, index) => index + 1)

function setUp(pledgeBytes = 1e9, over = {}) {
  const swarm = fakeSwarm(model, 2, over)
  const workers = [swarm.worker('w0', pledgeBytes), swarm.worker('w1', pledgeBytes)]
  const asker = swarm.join('asker', 'asker')
  return { swarm, workers, asker, last: at(workers, 1) }
}

/** Asks and answers with one token; the session that was used. */
function answer(
  { swarm, asker, last }: { swarm: FakeSwarm; asker: FakePeer; last: FakePeer },
  request: string,
  prompt: number[],
) {
  swarm.ask(asker, request, { prompt, maxTokens: 10, stopIds: [50] })
  swarm.pass(100)
  const { session } = last.last('session-open')
  finish(last, prompt.length)
  return session
}

function finish(last: FakePeer, position: number): void {
  const { session, epoch } = last.last('session-open')
  last.say({ kind: 'session-token', session, epoch, position, sampled: sampled(50) })
  last.say({ kind: 'session-end', session, epoch, reason: 'stop' })
}

test('RE9 the next question of a conversation goes on with the session of the one before', () => {
  const { swarm, workers, asker, last } = setUp()
  const session = answer({ swarm, asker, last }, 'r1', PROMPT)
  for (const worker of workers) expect(worker.last('session-close').retain).toBe(true)
  swarm.ask(asker, 'r2', { prompt: [...PROMPT, 50, 60, 61], maxTokens: 10 })
  expect(last.last('session-open')).toMatchObject({ session, epoch: 2, valid: 21, answered: 0 })
  expect(swarm.service.state().retained.size).toBe(0)
})

test('RE9 only as much is taken over as both texts begin with, and never the last row of the prompt', () => {
  const { swarm, asker, last } = setUp()
  answer({ swarm, asker, last }, 'r1', PROMPT)
  swarm.ask(asker, 'r2', { prompt: [...PROMPT.slice(0, 18), 70], maxTokens: 10 })
  expect(last.last('session-open')).toMatchObject({ epoch: 2, valid: 18 })
  asker.say({ kind: 'cancel', request: 'r2' as RequestId })
  const again = setUp()
  answer(again, 'r1', PROMPT)
  again.swarm.ask(again.asker, 'r2', { prompt: PROMPT, maxTokens: 10 })
  expect(again.last.last('session-open')).toMatchObject({ epoch: 2, valid: 19 })
})

test('RE9 a device that missed a change of text is believed only the rows that all texts of the session begin with', () => {
  const { swarm, workers, asker } = setUp()
  workers.push(swarm.worker('w2'))
  swarm.pass(1_000)
  const routeOf = (request: string) => {
    const { stages } = asker.all('ask-accepted').findLast((one) => one.request === request)!
    return stages.map(({ peer }) => workers.find((worker) => worker.peer === peer)!)
  }
  answer({ swarm, asker, last: workers[1]! }, 'r1', PROMPT)
  // Twice another text: 18 rows in common with the first, then 20 with the second.
  const second = [...PROMPT.slice(0, 18), 70, 71, 72]
  for (const [request, shared, prompt] of [
    ['r2', 18, second],
    ['r3', 20, [...second.slice(0, 20), 73]],
  ] as const) {
    swarm.ask(asker, request, { prompt: [...prompt], maxTokens: 10, stopIds: [50] })
    swarm.pass(100)
    for (const worker of routeOf(request)) expect(worker.last('session-open').valid).toBe(shared)
    if (request === 'r2') finish(routeOf(request).at(-1)!, prompt.length)
  }
  const route = routeOf('r3')
  const last = route.at(-1)!
  const { session, epoch } = last.last('session-open')
  for (const [index, token] of [60, 61].entries())
    last.say({
      kind: 'session-token',
      session,
      epoch,
      position: 21 + index,
      sampled: sampled(token),
    })
  const other = workers.find((worker) => !route.includes(worker))!
  last.say({ kind: 'leave' })
  swarm.pass(100)
  expect(route[0]!.last('session-open')).toMatchObject({ session, epoch: epoch + 1, valid: 22 })
  expect(other.last('session-open')).toMatchObject({ session, epoch: epoch + 1, valid: 18 })
})

test('another text begins another session', () => {
  const { swarm, asker, last } = setUp()
  const session = answer({ swarm, asker, last }, 'r1', PROMPT)
  swarm.ask(asker, 'r2', { prompt: PROMPT.toReversed(), maxTokens: 10 })
  expect(last.last('session-open')).toMatchObject({ epoch: 1, valid: 0 })
  expect(last.last('session-open').session).not.toBe(session)
})

test('RE9 what is kept is freed after a while, when there is too much of it, and when a stage is gone', () => {
  const { swarm, workers, asker, last } = setUp()
  for (let index = 0; index <= RETAINED_PER_STAGE; index += 1)
    answer({ swarm, asker, last }, `r${index}`, [index + 70, ...PROMPT])
  swarm.pass(100)
  const released = () => last.all('session-close').filter(({ retain }) => !retain).length
  expect(swarm.service.state().retained.size).toBe(RETAINED_PER_STAGE)
  expect(released()).toBe(1)
  swarm.pass(RETAIN_MS + 1_000)
  expect(swarm.service.state().retained.size).toBe(0)
  expect(released()).toBe(RETAINED_PER_STAGE + 1)
  answer({ swarm, asker, last }, 'again', PROMPT)
  at(workers, 0).say({ kind: 'leave' })
  swarm.pass(100)
  expect(swarm.service.state().retained.size).toBe(0)
  expect(last.last('session-close').retain).toBe(false)
})

test('RE9 an answer that failed leaves nothing to go on with', () => {
  const { swarm, workers, asker, last } = setUp()
  swarm.ask(asker, 'r1', { prompt: PROMPT })
  swarm.pass(100)
  last.say({ kind: 'leave' })
  swarm.pass(30_000)
  expect(asker.last('ask-end').reason).toBe('error')
  expect(at(workers, 0).last('session-close').retain).toBe(false)
  expect(swarm.service.state().retained.size).toBe(0)
})

test('sessions whose caches would not fit the pledge wait for their turn, and kept ones make room first', () => {
  // Exactly what the plan asks for: the weights and two whole contexts.
  const half = Math.floor(model.blocks.length / 2)
  const sizes = createStageSizes(model)
  const ranges = [
    { start: 0, end: half },
    { start: half, end: model.blocks.length },
  ]
  const { swarm, workers, last } = setUp(
    Math.max(...ranges.map((range) => sizes.bytes('wasm', range))),
  )
  const askers = [0, 1, 2].map((index) => swarm.join(`a${index}`, 'asker'))
  const opened = () => new Set(last.all('session-open').map(({ session }) => session)).size
  answer({ swarm, asker: at(askers, 0), last }, 'kept', PROMPT)
  for (const asker of askers) swarm.ask(asker, 'r', { prompt: PROMPT.toReversed(), maxTokens: 400 })
  swarm.pass(200)
  expect(opened()).toBe(3)
  expect(swarm.service.state().retained.size).toBe(0)
  expect(at(workers, 0).all('session-close').at(-1)?.retain).toBe(false)
  at(askers, 0).say({ kind: 'cancel', request: 'r' as RequestId })
  swarm.pass(200)
  expect(swarm.service.snapshot().requests.filter(({ state }) => state === 'queued')).toEqual([])
})

test('what an answer that moves still holds on the device it leaves is no room for another one', () => {
  const half = Math.floor(model.blocks.length / 2)
  const sizes = createStageSizes(model)
  const bytes = sizes.bytes('wasm', { start: half, end: model.blocks.length })
  const { swarm, workers, asker, last } = setUp(bytes)
  const session = answer({ swarm, asker, last }, 'kept', PROMPT)
  swarm.ask(asker, 'runs', { prompt: PROMPT.toReversed(), maxTokens: 400 })
  swarm.pass(200)
  const state = swarm.service.state()
  const [key, request] = [...state.requests].at(-1)!
  const { stages, epoch } = request
  const isOut = (over: Partial<typeof request>): boolean => {
    const requests = new Map(state.requests).set(key, { ...request, ...over })
    const another = { ...request, key: 'another' }
    const decisions = makeRoom({ ...state, requests }, stages, { request: another, adopted: null })
    return decisions.some((one) => one.kind === 'session-released' && one.session === session)
  }
  expect(workers).toHaveLength(2)
  expect(isOut({ stages: [] })).toBe(false)
  expect(isOut({})).toBe(true)
  expect(isOut({ stages: [], leaving: stages.map((stage) => ({ ...stage, epoch })) })).toBe(true)
})
