import { describe, expect, test } from 'vitest'
import { at, fakeRing, fakeSwarm, pledgeOf } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'
import type { PairId, PeerId } from '../sdk/core/ids.ts'
import { PAIR_RETRY_MS, PEERS_MAX, PLEDGE_MS, REJOIN_MS } from '../sdk/core/limits.ts'

const model = modelOf()
const ring = (stages = 3) => fakeRing(model, stages)

describe('assignments and links', () => {
  test('PA1 ST2 three tabs get the three thirds, are linked in a ring and the swarm is complete', () => {
    const { swarm, workers } = ring()
    expect(workers.map((worker) => worker.last('assign').range)).toEqual([
      { start: 0, end: 3 },
      { start: 3, end: 5 },
      { start: 5, end: 8 },
    ])
    const snapshot = swarm.service.snapshot()
    expect(snapshot.complete).toBe(true)
    expect(snapshot.advice).toBe('')
    expect(snapshot.links).toHaveLength(3)
    const opens = workers.flatMap((worker) => worker.all('pair-open'))
    expect(opens).toHaveLength(6)
    for (const { pair } of snapshot.links)
      expect(
        opens
          .filter((open) => open.pair === pair)
          .map((open) => open.initiator)
          .sort(),
      ).toEqual([false, true])
  })

  test('ST2 an open ring says what is missing', () => {
    const swarm = fakeSwarm(model, 3)
    expect(swarm.service.snapshot().advice).toBe('6 of 6 layers missing: open 3 more tabs')
    swarm.worker('a')
    swarm.worker('b')
    const snapshot = swarm.service.snapshot()
    expect(snapshot.complete).toBe(false)
    expect(snapshot.advice).toBe('2 of 6 layers missing: open one more tab')
    expect(snapshot.missing).toEqual([{ start: 5, end: 8 }])
  })

  test('PA2 PA8 a lost link is retried with a higher attempt, and stale reports change nothing', () => {
    const { swarm, workers } = ring(2)
    const [a, b] = [at(workers, 0), at(workers, 1)]
    const { pair } = a.last('pair-open')
    const report = { kind: 'link-state', pair, path: 'direct', rttMs: null } as const
    a.say({ ...report, attempt: 1, state: 'closed' })
    expect(swarm.service.snapshot().complete).toBe(false)
    swarm.pass(PAIR_RETRY_MS + 100)
    expect([a.last('pair-open').attempt, b.last('pair-open').attempt]).toEqual([2, 2])
    expect(swarm.service.snapshot().complete).toBe(true)
    b.say({ ...report, attempt: 1, state: 'closed' })
    expect(swarm.service.snapshot().complete).toBe(true)
  })

  test('PA8 one end alone does not open a pair, whatever it says and how often', () => {
    const swarm = fakeSwarm(model, 2)
    const [a, b] = [swarm.worker('a'), swarm.worker('b', 1e9, ['pair-open'])]
    const { pair, attempt } = b.last('pair-open')
    const report = { kind: 'link-state', pair, attempt, state: 'open', path: 'direct' } as const
    const shown = () => {
      const { complete, links } = swarm.service.snapshot()
      return [complete, links.map((link) => link.state)]
    }
    a.say({ ...report, rttMs: 2 })
    swarm.join('stranger').say({ ...report, rttMs: 2 })
    expect(shown()).toEqual([false, ['opening']])
    b.say({ ...report, rttMs: 2 })
    expect(shown()).toEqual([true, ['open']])
  })

  test('PA2 a host that started anew names no pair as an earlier one did', () => {
    const pairs = ['first', 'second'].map((pairPrefix) => {
      const swarm = fakeSwarm(model, 2, { pairPrefix })
      const a = swarm.worker('a')
      swarm.worker('b')
      return a.last('pair-open')
    })
    expect(pairs.map(({ pair, attempt }) => [pair, attempt])).toEqual([
      ['pair-first-1', 1],
      ['pair-second-1', 1],
    ])
  })

  test('PA1 PA2 signals go to the other end of the pair and attempt, and to nobody else', () => {
    const { swarm, workers } = ring(2)
    const [a, b] = [at(workers, 0), at(workers, 1)]
    const stranger = swarm.join('stranger')
    const { pair } = a.last('pair-open')
    stranger.say({ kind: 'signal', pair, attempt: 1, data: 'evil' })
    a.say({ kind: 'signal', pair, attempt: 9, data: 'stale' })
    a.say({ kind: 'signal', pair, attempt: 1, data: { sdp: 'x' } })
    expect(b.all('signal')).toEqual([{ kind: 'signal', pair, attempt: 1, data: { sdp: 'x' } }])
    expect(a.all('signal')).toEqual([])
  })

  test('RL5 relay bytes reach only the other end and are counted', () => {
    const { swarm, workers } = ring(2)
    const [a, b] = [at(workers, 0), at(workers, 1)]
    const stranger = swarm.join('stranger')
    const { pair } = a.last('pair-open')
    expect(stranger.handle.relay(pair, Uint8Array.of(1))).toBe(false)
    expect(a.handle.relay('no-such-pair' as PairId, Uint8Array.of(1))).toBe(false)
    expect(a.handle.relay(pair, Uint8Array.of(1, 2, 3))).toBe(true)
    expect(b.relayed).toEqual([{ pair, bytes: Uint8Array.of(1, 2, 3) }])
    const snapshot = swarm.service.snapshot()
    expect([snapshot.relayedBytes, snapshot.links[0]?.relayedBytes]).toEqual([3, 3])
  })
})

describe('reports and room', () => {
  test('ST1 a report on an older order means nothing', () => {
    const swarm = fakeSwarm(model, 1)
    const worker = swarm.join('a')
    worker.say(pledgeOf(1e9))
    const old = worker.last('assign').assignment
    worker.say(pledgeOf(25_000))
    expect(worker.last('assign').assignment).toBeGreaterThan(old)
    const bytes = { doneBytes: 1, totalBytes: 1, fetchedBytes: 1 }
    worker.say({ kind: 'stage-state', assignment: old, state: 'ready', ...bytes })
    expect(swarm.service.snapshot().peers[0]?.state).toBe('joining')
    expect(swarm.service.snapshot().missing).toEqual([{ start: 0, end: 8 }])
  })

  test('a device without a measured step keeps the speed that is known or guessed', () => {
    const { swarm, workers } = ring(1)
    const worker = at(workers, 0)
    const { assignment } = worker.last('assign')
    const report = (stepMs: number | null) => {
      worker.say({ kind: 'stage-stats', assignment, steps: 1, tokens: 1, stepMs })
      return swarm.service.snapshot().peers[0]?.stepMs
    }
    expect([report(null), report(0)]).toEqual([null, null])
    expect([report(4), report(null), report(0)]).toEqual([4, 4, 4])
    expect(swarm.service.snapshot().peers[0]?.tokens).toBe(1)
  })

  test('ST2 a block counts only once its device is ready', () => {
    const swarm = fakeSwarm(model, 1)
    const worker = swarm.join('a')
    worker.say(pledgeOf(1e9))
    const { assignment } = worker.last('assign')
    const bytes = { doneBytes: 1, totalBytes: 2, fetchedBytes: 1 }
    for (const state of ['fetching', 'loading'] as const) {
      worker.say({ kind: 'stage-state', assignment, state, ...bytes })
      const snapshot = swarm.service.snapshot()
      expect([snapshot.complete, snapshot.peers[0]?.state]).toEqual([false, state])
      expect(snapshot.advice).toBe('6 of 6 layers on the way: a device is loading them')
    }
    worker.say({ kind: 'stage-state', assignment, state: 'ready', ...bytes })
    expect(swarm.service.snapshot().complete).toBe(true)
  })

  test('PO3 a full pool refuses the next device, not one that comes back', () => {
    const swarm = fakeSwarm(model, 1)
    const silent = { send: () => undefined, sendRelay: () => undefined, close: () => undefined }
    const fill = (letter: string, role: 'worker' | 'watcher') => {
      for (let index = 0; index < PEERS_MAX; index++)
        swarm.service.join({ peer: `${letter}${index}` as PeerId, name: '', role }, silent)
    }
    fill('w', 'watcher')
    const full: unknown = expect.objectContaining({ code: 'pool-full' })
    expect(() => swarm.join('one-more', 'asker')).toThrow(full)
    expect(swarm.join('w0', 'watcher').last('welcome').peer).toBe('w0')
    fill('d', 'worker')
    expect(() => swarm.join('one-more', 'worker')).toThrow(full)
    expect(() => swarm.join('w0', 'worker')).toThrow(full)
  })
})

describe('leaving and coming back', () => {
  test('SG4 ST1 a reloaded tab keeps its place and gets the order again with a new number', () => {
    const { swarm, workers } = ring(2)
    const a = at(workers, 0)
    const before = a.last('assign')
    a.handle.closed()
    swarm.pass(REJOIN_MS - 500)
    expect(swarm.service.snapshot().peers.find((peer) => peer.peer === 'w0')?.state).toBe('joining')
    const again = swarm.worker('w0')
    expect(again.last('assign').range).toEqual(before.range)
    expect(again.last('assign').assignment).toBeGreaterThan(before.assignment)
    expect(swarm.service.snapshot().complete).toBe(true)
  })

  test('a tab that is back but has not pledged yet keeps its place, for a while', () => {
    const swarm = fakeSwarm(model, 1)
    const a = swarm.worker('a', 45_000)
    swarm.worker('b').handle.closed()
    a.say(pledgeOf(1e9))
    const orders = a.all('assign').length
    const back = swarm.join('b')
    swarm.pass(PLEDGE_MS - 500)
    expect(a.all('assign')).toHaveLength(orders)
    expect(back.all('assign')).toEqual([])
    swarm.pass(1_000)
    expect(a.last('assign').range).toEqual({ start: 0, end: 8 })
  })

  test('after the grace time the place is free and a newcomer takes it', () => {
    const { swarm, workers } = ring(2)
    at(workers, 1).handle.closed()
    swarm.pass(REJOIN_MS + 200)
    expect(swarm.service.snapshot().peers.map((peer) => peer.peer)).not.toContain('w1')
    const fresh = swarm.worker('new')
    expect(fresh.last('assign').range).toEqual({ start: 4, end: 8 })
    expect(swarm.service.snapshot().complete).toBe(true)
  })

  test('SG15 a newer connection of the same device ends the older one, which stays silent', () => {
    const { swarm, workers } = ring(2)
    const old = at(workers, 0)
    const fresh = swarm.worker('w0')
    expect(old.closedFor).toContain('connected again')
    expect(old.last('refused').error.code).toBe('replaced')
    old.say({ kind: 'leave' })
    old.handle.closed()
    expect(swarm.service.snapshot().peers.filter((peer) => peer.peer === 'w0')).toHaveLength(1)
    expect(fresh.closedFor).toBeNull()
    expect(fresh.inbox[0]?.kind).toBe('welcome')
  })

  test('a paused device gives its blocks to a spare', () => {
    const { swarm, workers } = ring(2)
    swarm.worker('spare')
    at(workers, 0).say(pledgeOf(0))
    swarm.pass(200)
    const snapshot = swarm.service.snapshot()
    expect(snapshot.peers.find((peer) => peer.peer === 'w0')?.state).toBe('paused')
    expect(snapshot.complete).toBe(true)
  })

  test('out of memory halves what the device is given; another failure sets it aside', () => {
    const swarm = fakeSwarm(model, 1)
    const worker = swarm.join('a')
    worker.say(pledgeOf(1e9))
    const fail = (code: string) =>
      worker.say({
        kind: 'stage-state',
        assignment: worker.last('assign').assignment,
        state: 'failed',
        doneBytes: 0,
        totalBytes: 0,
        fetchedBytes: 0,
        error: { code, message: 'broken' },
      })
    expect(worker.last('assign').range).toEqual({ start: 0, end: 8 })
    fail('out-of-memory')
    expect(worker.last('assign').range).toEqual({ start: 0, end: 4 })
    fail('self-test-failed')
    expect(worker.last('assign').range).toBeNull()
    expect(swarm.service.snapshot().peers[0]).toMatchObject({ state: 'failed', note: 'broken' })
  })
})

test('snapshots go to everybody, only when something changed and not too often', () => {
  const { swarm, asker } = ring(2)
  swarm.pass(1_000)
  const count = asker.all('swarm').length
  swarm.pass(2_000)
  expect(asker.all('swarm')).toHaveLength(count)
  for (let index = 0; index < 10; index++) {
    swarm.ask(asker, `r${index}`)
    swarm.pass(100)
  }
  expect(asker.all('swarm').length - count).toBeLessThanOrEqual(5)
  expect(asker.last('swarm').swarm).toEqual(swarm.service.snapshot())
})
