import { expect, test } from 'vitest'
import type { WireError } from '../sdk/core/errors.ts'
import type { RequestId } from '../sdk/core/ids.ts'
import { INCIDENT_MS, SESSION_IDLE_MS, SESSION_OPEN_MS } from '../sdk/core/limits.ts'
import {
  at,
  endAnswer,
  fakeRing,
  fakeSwarm,
  type FakePeer,
  type FakeSwarm,
} from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf()
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })
const ring = (stages = 3) => fakeRing(model, stages)

test('SE6 a stage that can not compute is named, one strike for each answer, and set aside the third time', () => {
  const { swarm, workers, asker } = ring(2)
  const error = { code: 'stage-failed', message: 'the GPU is gone' } as const
  for (let round = 1; round <= 3; round++) {
    swarm.ask(asker, `r${round}`)
    failAlways(swarm, at(workers, 0), error)
    expect(asker.last('ask-end').error?.message).toContain(error.message)
    expect(swarm.service.state().peers.get(at(workers, 0).peer)?.strikes).toBe(round)
  }
  expect(swarm.service.snapshot().peers[0]).toMatchObject({ state: 'failed' })
  expect(swarm.service.snapshot().complete).toBe(false)
})

test('SE6 what goes wrong at once is one strike, however many answers it ends, and the third time is the third', () => {
  const { swarm, workers, asker } = ring(2)
  const bad = at(workers, 0)
  const error = { code: 'stage-failed', message: 'the compute thread died' } as const
  const failing = () => swarm.service.state().peers.get(bad.peer)
  for (let incident = 1; incident <= 3; incident += 1) {
    for (const name of incident < 3 ? ['a', 'b', 'c', 'd'] : ['a']) {
      expect(failing()).toMatchObject({ setAside: null })
      swarm.ask(asker, `${name}${incident}`)
      const { session, epoch } = bad.last('session-open')
      bad.say({ kind: 'session-failed', session, epoch, error })
      expect(failing()).toMatchObject({ strikes: incident })
      swarm.pass(INCIDENT_MS / 5)
      asker.say({ kind: 'cancel', request: `${name}${incident}` as RequestId })
    }
    swarm.pass(INCIDENT_MS / 5)
  }
  expect(failing()).toMatchObject({ strikes: 3, setAside: error.message })
})

/** Fails every epoch of the newest session until the answer is given up. */
function failAlways(swarm: FakeSwarm, worker: FakePeer, error: WireError): void {
  const { session } = worker.last('session-open')
  for (let seconds = 0; seconds < 30; seconds++) {
    const { epoch } = worker.last('session-open')
    worker.say({ kind: 'session-failed', session, epoch, error })
    swarm.pass(1_000)
  }
}

test('strikes are forgotten after five good answers in a row, not before', () => {
  const { swarm, workers, asker } = ring(1)
  const worker = at(workers, 0)
  let asked = 0
  const answer = (end: 'stop' | 'failed') => {
    swarm.ask(asker, `r${asked++}`)
    const head = { session: worker.last('session-open').session, epoch: 1 }
    if (end === 'failed') failAlways(swarm, worker, { code: 'stage-failed', message: 'hiccup' })
    else endAnswer(worker, head)
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
  expect(strikes()).toBe(0)
  swarm.pass(100)
  expect(late.last('session-open').epoch).toBe(epoch + 1)
  const head = { session, epoch: epoch + 1 }
  late.say({ kind: 'session-ready', ...head, cached: 0, kept: 0 })
  at(workers, 0).say({ kind: 'session-failed', ...head, error })
  expect(strikes()).toBe(1)
})

test.each(['prompt-too-long', 'bad-request', 'aborted', 'model-changed', 'model-invalid'])(
  'SE6 a stage that says %s of a question that the host took is to blame, and another one answers',
  (code) => {
    const swarm = fakeSwarm(model, 1)
    const bad = swarm.worker('bad')
    const other = swarm.worker('other')
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1')
    const { session } = bad.last('session-open')
    bad.say({ kind: 'session-failed', session, epoch: 1, error: { code, message: 'no' } })
    swarm.pass(200)
    expect(swarm.service.state().peers.get(bad.peer)?.strikes).toBe(1)
    endAnswer(other, { session, epoch: 2 })
    expect(asker.last('ask-end')).toMatchObject({ request: 'r1', reason: 'stop' })
  },
)

const timeout = { code: 'timeout', message: 'the step took longer than 60000 ms' } as const

test.each([
  ['never gets ready', ['session-open'], SESSION_OPEN_MS, null],
  ['keeps silent as the last stage', [], SESSION_IDLE_MS, null],
  ['hits the limit of a step', [], INCIDENT_MS, timeout],
] as const)(
  'SE10 another holder takes over from a device that %s, which is set aside the third time',
  (_, ignored, waitMs, error) => {
    const swarm = fakeSwarm(model, 1)
    const bad = swarm.worker('bad', 1e9, ignored)
    const other = swarm.worker('other')
    const asker = swarm.join('asker', 'asker')
    const stateOf = () =>
      swarm.service.snapshot().peers.find((peer) => peer.peer === bad.peer)?.state
    for (let count = 1; count <= 3; count++) {
      expect(stateOf()).toBe('ready')
      swarm.ask(asker, `r${count}`)
      const { session } = bad.last('session-open')
      expect(bad.all('session-open')).toHaveLength(count)
      if (error !== null) bad.say({ kind: 'session-failed', session, epoch: 1, error })
      swarm.pass(waitMs + 200)
      expect(other.last('session-open')).toMatchObject({ session, epoch: 2 })
      expect(bad.last('session-close')).toMatchObject({ session, epoch: 1 })
      endAnswer(other, { session, epoch: 2 })
      expect(asker.last('ask-end')).toMatchObject({ request: `r${count}`, reason: 'stop' })
    }
    expect(stateOf()).toBe('failed')
    expect(swarm.service.state().peers.get(other.peer)?.strikes).toBe(0)
    swarm.ask(asker, 'again')
    expect(bad.all('session-open')).toHaveLength(3)
    expect(other.last('session-open').epoch).toBe(1)
  },
)

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
  asker.say({ kind: 'cancel', request: 'r1' as RequestId })
  swarm.ask(asker, 'r2')
  for (const peer of [waiting, unlinked]) {
    const { session, epoch } = peer.last('session-open')
    peer.say({ kind: 'session-ready', session, epoch, cached: 0, kept: 0 })
  }
  for (let steps = 1; steps <= 3; steps++) {
    swarm.pass(SESSION_IDLE_MS / 3)
    const { assignment } = unlinked.last('assign')
    unlinked.say({ kind: 'stage-stats', assignment, steps, tokens: 32 * steps, stepMs: null })
  }
  swarm.pass(200)
  expect(swarm.service.snapshot().requests.at(-1)).toMatchObject({ state: 'opening', repairs: 1 })
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

test.each(['bad-frame', 'stage-lost', 'non-finite', 'prompt-too-long'] as const)(
  'SE4 SE6 RE1 of a link over which %s came either end may be to blame, and no third one',
  (code) => {
    const { swarm, workers, asker } = ring(3)
    swarm.ask(asker, 'r1')
    const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
    const error = { code, message: 'only 3 rows are here' }
    at(workers, 1).say({ kind: 'session-failed', ...head, error })
    const doubts = workers.map(({ peer }) => swarm.service.state().peers.get(peer)?.doubts)
    expect(doubts).toEqual(code === 'stage-lost' ? [0, 1, 1] : [1, 1, 0])
    expect(swarm.service.state().peers.get(at(workers, 1).peer)?.strikes).toBe(0)
  },
)

test.each(['non-finite', 'prompt-too-long'] as const)(
  'SE6 %s of the first stage counts against it: nothing came in over a link',
  (code) => {
    const { swarm, workers, asker } = ring(3)
    swarm.ask(asker, 'r1')
    const head = { session: at(workers, 0).last('session-open').session, epoch: 1 }
    at(workers, 0).say({ kind: 'session-failed', ...head, error: { code, message: 'no' } })
    const { strikes, doubts } = swarm.service.state().peers.get(at(workers, 0).peer) ?? {}
    expect({ strikes, doubts }).toEqual({ strikes: 1, doubts: 0 })
  },
)

const outOfMemory = { code: 'out-of-memory', message: 'no room for the caches' } as const

test.each(['in a step', 'as a lost provider'])(
  'SE6 a device that runs out of memory %s comes back smaller, then not at all, and is not struck for it',
  (how) => {
    const swarm = fakeSwarm(model, 1)
    const bad = swarm.worker('bad')
    // Less than the whole model, more than half of it.
    swarm.worker('other', 45_000)
    const asker = swarm.join('asker', 'asker')
    const stateOf = () => swarm.service.state().peers.get(bad.peer)
    const held = () => bad.last('assign').range
    const fail = (names: readonly string[]) => {
      for (const name of names) swarm.ask(asker, name)
      const opened = bad.all('session-open').slice(-names.length)
      const { assignment } = bad.last('assign')
      const lost = { code: 'stage-failed', message: 'the GPU is gone' }
      for (const { session, epoch } of opened) {
        const error = how === 'in a step' ? outOfMemory : lost
        bad.say({ kind: 'session-failed', session, epoch, error })
      }
      if (how !== 'in a step') {
        expect(stateOf()?.strikes).toBe(1)
        const bytes = { doneBytes: 10, totalBytes: 10, fetchedBytes: 10 }
        bad.say({ kind: 'stage-state', assignment, state: 'failed', ...bytes, error: outOfMemory })
      }
      for (const request of names) asker.say({ kind: 'cancel', request: request as RequestId })
      swarm.pass(INCIDENT_MS)
    }
    const whole = blocksOf(held())
    fail(['a1', 'b1', 'c1'])
    expect(stateOf()).toMatchObject({ strikes: 0, setAside: null })
    expect(blocksOf(held())).toBeGreaterThan(0)
    expect(blocksOf(held())).toBeLessThan(whole)
    fail(['a2'])
    expect(stateOf()).toMatchObject({ strikes: 0, setAside: outOfMemory.message })
  },
)

function blocksOf(range: { readonly start: number; readonly end: number } | null): number {
  return range === null ? 0 : range.end - range.start
}
