import { describe, expect, test } from 'vitest'
import type { RequestId } from '../sdk/core/ids.ts'
import { REJOIN_MS, SESSION_IDLE_MS, SESSION_OPEN_MS } from '../sdk/core/limits.ts'
import { GREEDY } from '../sdk/core/sampling/params.ts'
import {
  at,
  endAnswer,
  fakeRing,
  fakeSwarm,
  pledgeOf,
  type FakeSwarm,
} from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf()
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })
const ring = (stages = 3) => fakeRing(model, stages)
const requestStates = ({ service }: FakeSwarm) =>
  service.snapshot().requests.map(({ state }) => state)

describe('sessions', () => {
  test('SE1 SE7 SE8 a question goes through the ring: open, ready, start, tokens, timings, end, close', () => {
    const { swarm, workers, asker } = ring()
    swarm.ask(asker, 'r1')
    const [first, middle, last] = [at(workers, 0), at(workers, 1), at(workers, 2)]
    expect(asker.last('ask-accepted')).toMatchObject({ request: 'r1', session: 7 })
    expect(workers.map((worker) => worker.last('session-open').stage)).toEqual([0, 1, 2])
    const open = last.last('session-open')
    expect(open).toMatchObject({
      promptLength: 3,
      maxTokens: 4,
      stopIds: [2],
      history: [],
      epoch: 1,
    })
    const pairs = workers.map((worker) => worker.last('session-open').nextPair)
    expect(new Set(pairs).size).toBe(3)
    expect(first.last('session-start').prompt).toEqual([5, 6, 7])
    expect(middle.all('session-start')).toMatchObject([{ from: 0, forward: 0, prompt: [] }])

    const head = { session: open.session, epoch: 1 }
    last.say({ kind: 'session-token', ...head, position: 3, sampled: sampled(11) })
    last.say({ kind: 'session-token', ...head, position: 4, sampled: sampled(2) })
    const timings = {
      promptTokens: 3,
      tokens: 2,
      firstTokenMs: 0,
      lapMs: 9,
      computeMs: 6,
      hopMs: 1,
      hops: 3,
    }
    last.say({ kind: 'session-timings', ...head, timings })
    last.say({ kind: 'session-end', ...head, reason: 'stop' })
    expect(asker.all('ask-token').map((token) => [token.position, token.sampled.token])).toEqual([
      [3, 11],
      [4, 2],
    ])
    expect(asker.last('ask-end')).toMatchObject({
      reason: 'stop',
      timings: { lapMs: 9, tokens: 2 },
    })
    for (const worker of workers) expect(worker.last('session-close')).toMatchObject(head)
    expect(swarm.service.snapshot()).toMatchObject({
      laps: 2,
      requests: [{ state: 'done', tokens: 2 }],
    })
  })

  test('SE11 each stage’s compute and the wire behind it are shown once the laps were timed', () => {
    const { swarm, workers, asker } = ring()
    swarm.ask(asker, 'r1')
    const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
    const hops = () => swarm.service.snapshot().requests[0]?.hops
    for (const [index, computeMs] of [4, 5, 6].entries())
      at(workers, index).say({ kind: 'session-step', ...head, computeMs })
    expect(hops()).toEqual([])
    const links = at(workers, 1).all('pair-open')
    for (const [index, rttMs] of [3, 8].entries()) {
      const { pair, attempt } = at(links, index)
      at(workers, 1).say({
        kind: 'link-state',
        pair,
        attempt,
        state: 'open',
        path: 'direct',
        rttMs,
      })
    }
    const lap = { lapMs: 20, computeMs: 15, hopMs: 2, hops: 3 }
    const timings = { promptTokens: 3, tokens: 1, firstTokenMs: 0, ...lap }
    at(workers, 2).say({ kind: 'session-timings', ...head, timings })
    const measured = [
      { computeMs: 4, wireMs: 1.5 },
      { computeMs: 5, wireMs: 4 },
      { computeMs: 6, wireMs: 0.5 },
    ]
    expect(hops()).toEqual(measured)
    at(workers, 1).say({ kind: 'session-step', ...head, computeMs: 7 })
    at(workers, 1).say({ kind: 'session-step', ...head, epoch: 2, computeMs: 99 })
    expect(hops()?.map((hop) => hop.computeMs)).toEqual([4, 7, 6])
    expect(() => swarm.join('x').say({ kind: 'session-step', ...head, computeMs: 1 })).toThrow(
      /not a stage/,
    )
    endAnswer(at(workers, 2), head)
    expect(hops()).toHaveLength(3)
  })

  test('the last stage gets the prompt only where its sampler needs it', () => {
    const { swarm, workers, asker } = ring(2)
    const sampling = { ...GREEDY, repetitionPenalty: 1.2, logitBias: [] }
    swarm.ask(asker, 'r1', { sampling })
    expect(at(workers, 1).last('session-open').history).toEqual([5, 6, 7])
    expect(at(workers, 0).last('session-open').history).toEqual([])
  })

  test('a whole-model device serves alone, without a link', () => {
    const { swarm, workers, asker } = ring(1)
    swarm.ask(asker, 'r1')
    expect(at(workers, 0).last('session-open')).toMatchObject({ nextPair: null, stage: 0 })
    expect(at(workers, 0).all('session-start')).toHaveLength(1)
  })

  test('SE9 a prompt that leaves no room is refused with the numbers; the answer is cut to the window', () => {
    const { swarm, workers, asker } = ring(2)
    swarm.ask(asker, 'long', { prompt: Array.from({ length: 16 }, () => 1) })
    expect(asker.last('ask-end').error).toMatchObject({ code: 'prompt-too-long' })
    expect(asker.last('ask-end').error?.message).toMatch(/16 tokens.*holds 16/)
    swarm.ask(asker, 'fits', { prompt: Array.from({ length: 15 }, () => 1), maxTokens: 100 })
    expect(at(workers, 0).last('session-open').maxTokens).toBe(1)
  })

  test('SE8 other requests that can not be served are refused by name', () => {
    const { swarm, asker } = ring(2)
    const code = (request: string) =>
      asker.all('ask-end').find((end) => end.request === request)?.error?.code
    swarm.ask(asker, 'model', { model: 'other' } as never)
    swarm.ask(asker, 'build', { revision: 'r0' })
    expect(code('build')).toBe('model-changed')
    expect(asker.last('ask-end').error?.message).toMatch(/serves another model: test-model/)
    swarm.ask(asker, 'token', { prompt: [100] })
    swarm.ask(asker, 'none', { maxTokens: 0 })
    expect(['model', 'token', 'none'].map(code)).toEqual([
      'model-not-found',
      'bad-request',
      'bad-request',
    ])
  })

  test('an open ring refuses with what is missing and the advice', () => {
    const swarm = fakeSwarm(model, 3)
    swarm.worker('a')
    swarm.worker('b')
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1')
    expect(asker.last('ask-end')).toMatchObject({
      reason: 'error',
      error: {
        code: 'ring-incomplete',
        message: 'layers 5–6 and head have no worker (2 of 6 layers missing: open one more tab)',
      },
    })
  })

  test('four sessions at once, then a queue, then no more', () => {
    const { swarm, workers } = ring(2)
    const askers = Array.from({ length: 21 }, (_, index) => swarm.join(`a${index}`, 'asker'))
    for (const asker of askers) swarm.ask(asker, 'r')
    const accepted = () =>
      askers.flatMap((asker) => (asker.all('ask-accepted').length > 0 ? [asker.peer] : []))
    expect(accepted()).toEqual(['a0', 'a1', 'a2', 'a3'])
    const ended = askers.filter((asker) => asker.all('ask-end').length > 0)
    expect(ended.map((asker) => asker.peer)).toEqual(['a20'])
    expect(at(askers, 20).last('ask-end').error).toMatchObject({ code: 'too-many-requests' })
    const { session } = at(workers, 1).all('session-open')[0] ?? { session: 0 as never }
    endAnswer(at(workers, 1), { session, epoch: 1 })
    expect(accepted()).toContain('a4')
  })

  test('nobody fills the queue alone: four questions of one asker, then another asker’s', () => {
    const { swarm, asker } = ring(2)
    for (let index = 0; index < 5; index++) swarm.ask(asker, `r${index}`)
    expect(asker.all('ask-end')).toMatchObject([
      { request: 'r4', error: { code: 'too-many-requests' } },
    ])
    const other = swarm.join('other', 'asker')
    swarm.ask(other, 'r')
    expect(other.all('ask-end')).toEqual([])
    asker.say({ kind: 'cancel', request: 'r0' as RequestId })
    swarm.ask(asker, 'r5')
    expect(asker.all('ask-end').map((end) => end.request)).toEqual(['r4', 'r0'])
  })

  test('SE7 SE8 an answer that outlives many others still ends, and frees its caches', () => {
    const { swarm, workers, asker } = ring(2)
    swarm.ask(asker, 'long')
    const { session } = at(workers, 1).last('session-open')
    for (let index = 0; index < 30; index++) {
      swarm.ask(asker, `r${index}`)
      const short = { session: at(workers, 1).last('session-open').session, epoch: 1 }
      endAnswer(at(workers, 1), short)
    }
    endAnswer(at(workers, 1), { session, epoch: 1 })
    expect(asker.last('ask-end')).toMatchObject({ request: 'long', reason: 'stop' })
    for (const worker of workers)
      expect(worker.all('session-close')).toContainEqual({
        kind: 'session-close',
        session,
        epoch: 1,
        retain: true,
      })
    expect(swarm.service.snapshot().requests.at(-1)?.id).toContain('long')
  })

  test('questions wait while a device that lost its connection may come back, and no longer', () => {
    const { swarm, workers } = ring(2)
    const askers = Array.from({ length: 6 }, (_, index) => swarm.join(`a${index}`, 'asker'))
    for (const asker of askers) swarm.ask(asker, 'r')
    const [waiting] = askers.slice(4)
    at(workers, 1).handle.closed()
    swarm.pass(REJOIN_MS - 500)
    expect(waiting?.all('ask-end')).toEqual([])
    const back = swarm.worker('w1')
    swarm.pass(500)
    const [running] = askers
    running?.say({ kind: 'cancel', request: 'r' as RequestId })
    expect(waiting?.all('ask-accepted')).toHaveLength(1)
    back.handle.closed()
    const [last] = askers.slice(5)
    expect(last?.all('ask-end')).toHaveLength(0)
    swarm.pass(REJOIN_MS + 10_000)
    expect(last?.last('ask-end')).toMatchObject({ error: { code: 'ring-incomplete' } })
  })

  test('a request id that was used is not asked twice', () => {
    const { swarm, asker } = ring(2)
    swarm.ask(asker, 'r1')
    swarm.ask(asker, 'r1')
    expect(asker.all('ask-accepted')).toHaveLength(1)
  })

  test('SE7 SE8 where nobody takes over, a stage that leaves ends the answer, which says who left', () => {
    const { swarm, workers, asker } = ring()
    swarm.ask(asker, 'r1')
    at(workers, 1).handle.closed()
    swarm.pass(REJOIN_MS)
    expect(asker.all('ask-end')).toEqual([])
    swarm.pass(10_000)
    expect(asker.last('ask-end')).toMatchObject({ reason: 'error', error: { code: 'stage-lost' } })
    expect(asker.last('ask-end').error?.message).toMatch(
      /^w1, which held layers 3–4, left in the middle of the answer; nobody took over within 12 s: layers 3–4 have no worker/,
    )
    expect(at(workers, 0).all('session-close')).toHaveLength(1)
    expect(at(workers, 2).all('session-close')).toHaveLength(1)
  })

  test('SE7 cancel and a closed page free every stage at once', () => {
    const { swarm, workers, asker } = ring(2)
    swarm.ask(asker, 'r1')
    asker.say({ kind: 'cancel', request: 'r1' as RequestId })
    expect(asker.last('ask-end').reason).toBe('cancelled')
    expect(at(workers, 0).all('session-close')).toHaveLength(1)
    swarm.ask(asker, 'r2')
    asker.handle.closed()
    expect(workers.map((worker) => worker.all('session-close').length)).toEqual([2, 2])
    expect(swarm.service.snapshot().requests.map((request) => request.state)).toEqual([
      'cancelled',
      'cancelled',
    ])
  })

  test('SE2 SE3 tokens from the wrong stage are refused, a wrong position breaks the route', () => {
    const { swarm, workers, asker } = ring()
    swarm.ask(asker, 'r1')
    const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
    const token = { kind: 'session-token', ...head, position: 3, sampled: sampled(9) } as const
    expect(() => at(workers, 0).say(token)).toThrow(/last stage/)
    expect(() => swarm.join('stranger').say(token)).toThrow(/not a stage/)
    at(workers, 2).say({ ...token, epoch: 2 })
    expect(asker.all('ask-token')).toEqual([])
    at(workers, 2).say({ ...token, position: 5 })
    expect(asker.all('ask-token')).toEqual([])
    expect(swarm.service.state().peers.get(at(workers, 2).peer)?.strikes).toBe(1)
    expect(swarm.service.snapshot().requests).toMatchObject([{ state: 'repairing' }])
    at(workers, 2).say({ ...token, position: 3 })
    expect(asker.all('ask-token')).toEqual([])
  })

  test('SE3 a token more than was asked for counts against the stage; the answer ends without it', () => {
    const { swarm, workers, asker } = ring(2)
    swarm.ask(asker, 'r1', { maxTokens: 1, revision: model.revision })
    const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
    for (const position of [3, 4])
      at(workers, 1).say({ kind: 'session-token', ...head, position, sampled: sampled(9) })
    expect(asker.all('ask-token')).toHaveLength(1)
    expect(swarm.service.state().peers.get(at(workers, 1).peer)?.strikes).toBe(1)
    expect(swarm.service.snapshot().requests).toMatchObject([{ state: 'done', tokens: 1 }])
  })

  test.each([
    ['the token', { token: 100, top: [] }],
    ['one beside it', { token: 9, top: [{ token: 100, logprob: -1 }] }],
  ])('SE3 where %s is not in the vocabulary the route breaks', (_, wrong) => {
    const { swarm, workers, asker } = ring(2)
    swarm.ask(asker, 'r1')
    const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
    const said = { ...wrong, logprob: -0.5 }
    at(workers, 1).say({ kind: 'session-token', ...head, position: 3, sampled: said })
    expect(asker.all('ask-token')).toEqual([])
    expect(swarm.service.state().peers.get(at(workers, 1).peer)?.strikes).toBe(1)
    expect(requestStates(swarm)).toEqual(['repairing'])
  })

  test.each(['stop', 'length', 'cancelled', 'error'] as const)(
    'SE3 an end by %s that the tokens do not bear out breaks the route',
    (reason) => {
      const { swarm, workers, asker } = ring(2)
      swarm.ask(asker, 'r1')
      const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
      const [, last] = workers
      last?.say({ kind: 'session-token', ...head, position: 3, sampled: sampled(9) })
      last?.say({ kind: 'session-end', ...head, reason })
      expect(asker.all('ask-end')).toEqual([])
      expect(swarm.service.state().peers.get(at(workers, 1).peer)?.strikes).toBe(1)
      expect(requestStates(swarm)).toEqual(['repairing'])
    },
  )

  test('SE10 stages that never get ready, and rings that fall silent, run into their time limits', () => {
    const swarm = fakeSwarm(model, 1)
    const lazy = swarm.join('lazy')
    lazy.say(pledgeOf(1e9))
    const { assignment } = lazy.last('assign')
    const bytes = { doneBytes: 1, totalBytes: 1, fetchedBytes: 1 }
    lazy.say({ kind: 'stage-state', assignment, state: 'ready', ...bytes })
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1')
    swarm.pass(5 * SESSION_OPEN_MS)
    expect(asker.last('ask-end').error).toMatchObject({ code: 'timeout' })
    expect(asker.last('ask-end').error?.message).toMatch(/lazy; nobody took over.*4 routes broke/)
    expect(lazy.all('session-close')).toHaveLength(1)
    swarm.ask(asker, 'r2')
    const { session } = lazy.last('session-open')
    lazy.say({ kind: 'session-ready', session, epoch: 1, cached: 0, kept: 0 })
    swarm.pass(SESSION_IDLE_MS - 500)
    expect(swarm.service.snapshot().requests.at(-1)?.state).toBe('running')
    swarm.pass(700)
    expect(swarm.service.snapshot().requests.at(-1)?.state).toBe('repairing')
  })

  test('a device that computes is not given other blocks before its answers are done', () => {
    const { swarm, workers, asker } = ring(2)
    swarm.ask(asker, 'r1')
    at(workers, 0).say(pledgeOf(0))
    const orders = at(workers, 0).all('assign').length
    swarm.pass(500)
    expect(at(workers, 0).all('assign')).toHaveLength(orders)
    asker.say({ kind: 'cancel', request: 'r1' as RequestId })
    expect(at(workers, 0).last('assign').range).toBeNull()
  })

  test('SG17 roles keep to their messages', () => {
    const { swarm, asker } = ring(1)
    const watcher = swarm.join('watcher', 'watcher')
    expect(() => asker.say(pledgeOf(1))).toThrow(/role asker/)
    expect(() => swarm.ask(watcher, 'r1')).toThrow(/role watcher/)
  })
})
