import { expect, test } from 'vitest'
import { SESSION_IDLE_MS, SESSION_OPEN_MS } from '../sdk/core/limits.ts'
import {
  at,
  fakeRing,
  fakeSwarm,
  type FakePeer,
  type FakeSwarm,
} from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf()
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })
const ring = (stages = 3) => fakeRing(model, stages)

test('SE6 a stage that can not compute is named, and set aside the third time', () => {
  const { swarm, workers, asker } = ring(2)
  for (let round = 1; round <= 3; round++) {
    swarm.ask(asker, `r${round}`)
    const { session } = at(workers, 0).last('session-open')
    const error = { code: 'stage-failed', message: 'the GPU is gone' }
    at(workers, 0).say({ kind: 'session-failed', session, epoch: 1, error })
    expect(asker.last('ask-end').error).toEqual(error)
  }
  expect(swarm.service.snapshot().peers[0]).toMatchObject({ state: 'failed' })
  expect(swarm.service.snapshot().complete).toBe(false)
})

test('strikes are forgotten after five good answers in a row, not before', () => {
  const { swarm, workers, asker } = ring(1)
  const worker = at(workers, 0)
  let asked = 0
  const answer = (end: 'stop' | 'failed') => {
    swarm.ask(asker, `r${asked++}`)
    const head = { session: worker.last('session-open').session, epoch: 1 }
    const error = { code: 'stage-failed', message: 'hiccup' }
    if (end === 'failed') worker.say({ kind: 'session-failed', ...head, error })
    else worker.say({ kind: 'session-end', ...head, reason: end })
  }
  const strikes = () => swarm.service.state().peers.get(worker.peer)?.strikes
  answer('failed')
  for (let good = 0; good < 4; good++) answer('stop')
  answer('failed')
  for (let good = 0; good < 4; good++) answer('stop')
  expect(strikes()).toBe(2)
  answer('stop')
  expect(strikes()).toBe(0)
  answer('failed')
  expect(swarm.service.snapshot().complete).toBe(true)
})

test('SE6 a step that hits its limit counts against its device, a link that does not come up does not', () => {
  const { swarm, workers, asker } = ring(2)
  const error = { code: 'timeout', message: 'the step took longer than 60000 ms' }
  const strikes = () => swarm.service.state().peers.get(at(workers, 0).peer)?.strikes
  at(workers, 1).handle.closed()
  const late = swarm.worker('w1', 1e9, ['session-open'])
  swarm.ask(asker, 'waits')
  const { session, epoch } = late.last('session-open')
  at(workers, 0).say({ kind: 'session-failed', session, epoch, error })
  expect(asker.last('ask-end').error).toEqual(error)
  expect(strikes()).toBe(0)
  swarm.ask(asker, 'runs')
  const head = { session: late.last('session-open').session, epoch }
  late.say({ kind: 'session-ready', ...head })
  at(workers, 0).say({ kind: 'session-failed', ...head, error })
  expect(strikes()).toBe(1)
})

test('SE10 a device that never gets ready is set aside and another holder is asked', () => {
  const swarm = fakeSwarm(model, 1)
  const late = swarm.worker('bad', 1e9, ['session-open'])
  const other = swarm.worker('other')
  expectReplaced(swarm, late, other, () => swarm.pass(SESSION_OPEN_MS + 200))
})

test('SE10 a last stage that keeps silent is set aside and another holder is asked', () => {
  const swarm = fakeSwarm(model, 1)
  const silent = swarm.worker('bad')
  const other = swarm.worker('other')
  expectReplaced(swarm, silent, other, () => swarm.pass(SESSION_IDLE_MS + 200))
})

test('SE10 a step that hits its limit three times: set aside, and another holder is asked', () => {
  const swarm = fakeSwarm(model, 1)
  const slow = swarm.worker('bad')
  const other = swarm.worker('other')
  const error = { code: 'timeout', message: 'the step took longer than 60000 ms' }
  expectReplaced(swarm, slow, other, () => {
    const { session, epoch } = slow.last('session-open')
    slow.say({ kind: 'session-failed', session, epoch, error })
  })
})

test('SE10 who only waits for a link, or still computes, is not blamed', () => {
  const swarm = fakeSwarm(model, 2)
  const waiting = swarm.worker('waiting', 1e9, ['session-open'])
  const unlinked = swarm.worker('unlinked', 1e9, ['session-open', 'pair-open'])
  const asker = swarm.join('asker', 'asker')
  const strikes = () =>
    [waiting, unlinked].map(({ peer }) => swarm.service.state().peers.get(peer)?.strikes)
  swarm.ask(asker, 'r1')
  swarm.pass(SESSION_OPEN_MS + 200)
  // The one’s link is not open at the other end; the other’s is, and it said nothing.
  expect(strikes()).toEqual([0, 1])
  swarm.ask(asker, 'r2')
  for (const peer of [waiting, unlinked]) {
    const { session, epoch } = peer.last('session-open')
    peer.say({ kind: 'session-ready', session, epoch })
  }
  for (let steps = 1; steps <= 3; steps++) {
    swarm.pass(SESSION_IDLE_MS / 3)
    const { assignment } = unlinked.last('assign')
    unlinked.say({ kind: 'stage-stats', assignment, steps, tokens: 32 * steps, stepMs: null })
  }
  swarm.pass(200)
  expect(asker.last('ask-end')).toMatchObject({ request: 'r2', error: { code: 'timeout' } })
  expect(strikes()).toEqual([0, 1])
})

test('SE10 in a running answer the first stage that had no part in a lap is blamed', () => {
  const { swarm, workers, asker } = ring()
  swarm.ask(asker, 'r1')
  const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
  const token = { kind: 'session-token', ...head, position: 3, sampled: sampled(11) } as const
  at(workers, 2).say(token)
  at(workers, 0).say({ kind: 'session-step', ...head, computeMs: 3 })
  swarm.pass(SESSION_IDLE_MS + 200)
  expect(workers.map(({ peer }) => swarm.service.state().peers.get(peer)?.strikes)).toEqual([
    0, 1, 0,
  ])
})

/** Asks until a device is set aside for it, which takes three rounds; then another one serves. */
function expectReplaced(
  swarm: FakeSwarm,
  bad: FakePeer,
  other: FakePeer,
  round: (asker: FakePeer) => void,
): void {
  const asker = swarm.join('asker', 'asker')
  const stateOf = () => swarm.service.snapshot().peers.find((peer) => peer.peer === bad.peer)?.state
  for (let count = 1; count <= 3; count++) {
    expect(stateOf()).toBe('ready')
    swarm.ask(asker, `r${count}`)
    expect(bad.all('session-open')).toHaveLength(count)
    round(asker)
    expect(asker.last('ask-end')).toMatchObject({
      request: `r${count}`,
      error: { code: 'timeout' },
    })
  }
  expect(stateOf()).toBe('failed')
  expect(swarm.service.state().peers.get(other.peer)?.strikes).toBe(0)
  swarm.ask(asker, 'again')
  expect(bad.all('session-open')).toHaveLength(3)
  expect(other.all('session-open')).toHaveLength(1)
  expect(asker.all('ask-end').map((end) => end.request)).not.toContain('again')
}
