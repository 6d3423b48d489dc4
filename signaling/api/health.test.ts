import { expect, test } from 'vitest'
import { at, fakeRing, fakeSwarm } from '../../test/support/fake-swarm.ts'
import { modelOf } from '../../test/support/host-fixtures.ts'
import type { FakePeer } from '../../test/support/fake-swarm.ts'
import { createHealth } from './health.ts'

type Ring = Pick<ReturnType<typeof fakeRing>, 'swarm'>

function setUp({ swarm }: Ring) {
  let now = 1_000
  let ids = 0
  const timers: (() => void)[] = []
  const health = createHealth({
    service: swarm.service,
    served: () => modelOf(),
    randomId: () => String((ids += 1)),
    now: () => now,
    later(_ms, task) {
      timers.push(task)
      return () => timers.splice(timers.indexOf(task), 1)
    },
  })
  const pass = (ms: number): void => {
    now += ms
    swarm.pass(ms)
  }
  return { health, pass, timers, runs: () => ids }
}

/** The last stage gives one token for each session that was started. */
function serve(workers: readonly FakePeer[]): void {
  const last = at(workers, workers.length - 1)
  const { session, epoch } = last.last('session-open')
  const sampled = { token: 5, logprob: -1, top: [] }
  last.say({ kind: 'session-token', session, epoch, position: 1, sampled })
  last.say({ kind: 'session-end', session, epoch, reason: 'length' })
}

test('a token that the ring really chose makes it well, for a few seconds', async () => {
  const ring = fakeRing(modelOf(), 2)
  const { health, pass, runs } = setUp(ring)
  const checks = [health.check(), health.check()]
  pass(100)
  serve(ring.workers)
  expect(await Promise.all(checks)).toEqual(Array(2).fill({ ok: true, reason: '' }))
  expect(runs()).toBe(1)
  pass(4_800)
  await health.check()
  expect(runs()).toBe(1)
  pass(200)
  const again = health.check()
  pass(100)
  serve(ring.workers)
  expect(await again).toMatchObject({ ok: true })
  expect(runs()).toBe(2)
  expect(ring.swarm.service.state().peers.size).toBe(3)
})

test('an incomplete ring is ill at once, and is looked at again a second later', async () => {
  const swarm = fakeSwarm(modelOf(), 2)
  const { health, pass, runs } = setUp({ swarm })
  expect(await health.check()).toEqual({
    ok: false,
    reason: expect.stringMatching(/^ring-incomplete: .*have no worker/) as string,
  })
  await health.check()
  expect(runs()).toBe(1)
  pass(1_000)
  await health.check()
  expect(runs()).toBe(2)
})

test('a ring that is linked but gives no token is ill, and is not asked for ever', async () => {
  const ring = fakeRing(modelOf(), 2)
  const { health, timers, pass } = setUp(ring)
  const check = health.check()
  pass(100)
  // The run's own limit.
  timers[0]?.()
  expect(await check).toEqual({
    ok: false,
    reason: 'timeout: Something took longer than its limit. Try again.',
  })
  expect(at(ring.workers, 0).last('session-close')).toBeDefined()
})

test('a device that fails makes it ill, but is not named to whoever asks', async () => {
  const ring = fakeRing(modelOf(), 2)
  const { health, pass } = setUp(ring)
  const check = health.check()
  pass(100)
  const worker = at(ring.workers, 0)
  const error = { code: 'stage-failed', message: 'Ada’s phone broke' }
  for (let seconds = 0; seconds < 20; seconds += 1) {
    const { session, epoch } = worker.last('session-open')
    worker.say({ kind: 'session-failed', session, epoch, error })
    pass(1_000)
  }
  const { ok, reason } = await check
  expect(ok).toBe(false)
  expect(reason).toMatch(/^stage-failed: /)
  expect(reason).not.toContain('Ada')
})

test.each([20, 6])(
  'a busy ring (%i requests) is well while others get their tokens',
  async (count) => {
    const ring = fakeRing(modelOf(), 2)
    const { health, timers, pass } = setUp(ring)
    for (let index = 0; index < count; index += 1)
      ring.swarm.ask(ring.swarm.join(`a${index}`, 'asker'), 'r')
    const last = at(ring.workers, 1)
    const { session, epoch } = last.last('session-open')
    const sampled = { token: 5, logprob: -1, top: [] }
    last.say({ kind: 'session-token', session, epoch, position: 3, sampled })
    const check = health.check()
    timers[0]?.()
    expect(await check).toEqual({ ok: true, reason: '' })
    pass(15_000)
    const later = health.check()
    timers[0]?.()
    expect((await later).ok).toBe(false)
  },
)
