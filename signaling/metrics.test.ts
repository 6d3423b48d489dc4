import { expect, test } from 'vitest'
import { at, fakeRing } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'
import type { SwarmService } from './swarm-service.ts'
import { createHostMetrics, type HostMetrics } from './metrics.ts'

function ringWithMetrics() {
  let service: SwarmService | null = null
  const metrics: HostMetrics = createHostMetrics(() => {
    if (service === null) throw new Error('not yet')
    return service.state()
  })
  const ring = fakeRing(modelOf(), 2, { observe: (event, after) => metrics.observe(event, after) })
  service = ring.swarm.service
  const value = async (line: string): Promise<number> => {
    const found = (await metrics.text()).split('\n').find((one) => one.startsWith(`${line} `))
    return Number(found?.slice(line.length + 1) ?? NaN)
  }
  return { ...ring, metrics, value }
}

test('who is here, what waits, and whether the ring is whole', async () => {
  const { swarm, workers, value } = ringWithMetrics()
  expect(await value('crowdinfer_peers{role="worker"}')).toBe(2)
  expect(await value('crowdinfer_peers{role="asker"}')).toBe(1)
  expect(await value('crowdinfer_workers_ready')).toBe(2)
  expect(await value('crowdinfer_ring_complete')).toBe(1)
  for (let index = 0; index < 6; index += 1) swarm.ask(swarm.join(`a${index}`, 'asker'), 'r')
  expect(await value('crowdinfer_requests{phase="running"}')).toBe(4)
  expect(await value('crowdinfer_requests{phase="queued"}')).toBe(2)
  at(workers, 0).say({ kind: 'leave' })
  expect(await value('crowdinfer_workers_ready')).toBe(1)
  expect(await value('crowdinfer_ring_complete')).toBe(0)
})

test('a prompt counts once, over however many routes its answer goes', async () => {
  const { swarm, workers, asker, value } = ringWithMetrics()
  swarm.ask(asker, 'r1')
  const last = at(workers, 1)
  const { session, epoch } = last.last('session-open')
  swarm.pass(200)
  const error = { code: 'link-closed', message: 'transport' }
  last.say({ kind: 'session-failed', session, epoch, error })
  swarm.pass(2_000)
  expect(last.last('session-start')).toMatchObject({ session, epoch: 2 })
  expect(await value('crowdinfer_tokens_total{kind="prompt"}')).toBe(3)
  swarm.ask(asker, 'r2', { answered: [11] })
  swarm.pass(200)
  expect(await value('crowdinfer_tokens_total{kind="prompt"}')).toBe(3)
})

test('tokens, laps, outcomes and times of what was answered', async () => {
  const { swarm, workers, asker, value } = ringWithMetrics()
  swarm.ask(asker, 'r1')
  const last = at(workers, 1)
  const { session, epoch } = last.last('session-open')
  for (const [position, token] of [
    [3, 5],
    [4, 2],
  ] as const) {
    swarm.pass(20)
    const sampled = { token, logprob: -1, top: [] }
    last.say({ kind: 'session-token', session, epoch, position, sampled })
  }
  const timings = {
    promptTokens: 3,
    tokens: 2,
    firstTokenMs: 0,
    lapMs: 20,
    computeMs: 12,
    hopMs: 4,
    hops: 2,
  }
  last.say({ kind: 'session-timings', session, epoch, timings })
  last.say({ kind: 'session-end', session, epoch, reason: 'stop' })
  swarm.ask(asker, 'r2')
  asker.say({ kind: 'cancel', request: 'r2' as never })
  expect(await value('crowdinfer_tokens_total{kind="prompt"}')).toBe(6)
  expect(await value('crowdinfer_tokens_total{kind="answer"}')).toBe(2)
  expect(await value('crowdinfer_laps_total')).toBe(2)
  expect(await value('crowdinfer_laps_total')).toBe(2)
  expect(await value('crowdinfer_requests_total{outcome="stop"}')).toBe(1)
  expect(await value('crowdinfer_requests_total{outcome="cancelled"}')).toBe(1)
  expect(await value('crowdinfer_lap_seconds_sum')).toBeCloseTo(0.02)
  expect(await value('crowdinfer_lap_compute_seconds_sum')).toBeCloseTo(0.012)
  expect(await value('crowdinfer_hop_seconds_count')).toBe(1)
  expect(await value('crowdinfer_lap_predicted_seconds_count')).toBe(1)
  expect(await value('crowdinfer_lap_prediction_error_count{basis="guessed"}')).toBe(1)
  expect(await value('crowdinfer_first_token_seconds_sum')).toBeCloseTo(0.02)
})

test('an answer that was gone on with counts its new tokens, and no time that was not measured', async () => {
  const { swarm, workers, asker, value } = ringWithMetrics()
  swarm.ask(asker, 'r1', { answered: [8, 9], maxTokens: 3 })
  const last = at(workers, 1)
  const { session, epoch } = last.last('session-open')
  const head = { session, epoch }
  last.say({
    kind: 'session-token',
    ...head,
    position: 5,
    sampled: { token: 5, logprob: -1, top: [] },
  })
  const lap = { lapMs: 0, computeMs: 0, hopMs: 0, hops: 2 }
  const timings = { promptTokens: 3, tokens: 3, firstTokenMs: 0, ...lap }
  last.say({ kind: 'session-timings', ...head, timings })
  last.say({ kind: 'session-end', ...head, reason: 'length' })
  expect(await value('crowdinfer_tokens_total{kind="answer"}')).toBe(1)
  expect(await value('crowdinfer_requests_total{outcome="length"}')).toBe(1)
  expect(await value('crowdinfer_lap_seconds_count')).toBe(0)
  expect(await value('crowdinfer_first_token_seconds_count')).toBe(0)
})

test('relayed bytes, and two hosts in one process apart', async () => {
  const one = ringWithMetrics()
  const two = ringWithMetrics()
  const [pair] = [...one.swarm.service.state().pairs.keys()]
  if (pair === undefined) throw new Error('no pair')
  at(one.workers, 0).handle.relay(pair, new Uint8Array(100))
  expect(await one.value('crowdinfer_relayed_bytes_total')).toBe(100)
  expect(await two.value('crowdinfer_relayed_bytes_total')).toBe(0)
})

test('nobody is named', async () => {
  const { metrics } = ringWithMetrics()
  expect(await metrics.text()).not.toMatch(/w0|asker-/)
  expect(metrics.contentType).toMatch(/^text\/plain/)
})
