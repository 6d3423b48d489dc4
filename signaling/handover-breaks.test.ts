import { describe, expect, test } from 'vitest'
import { HANDOVER_PAUSE_MS } from '../sdk/core/limits.ts'
import { at, endAnswer, fakeSwarm, pledgeOf, type FakeSwarm } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'
import {
  answering,
  byPeer,
  requestOf,
  sampled,
  stagesOf,
  token,
  useReplica,
  withReplica,
} from '../test/support/moving-answer.ts'

describe('room for caches', () => {
  const small = modelOf()
  /** Two devices that have room for the weights and two whole contexts each, and somebody who asks. */
  function twoDevices() {
    const swarm = fakeSwarm(small, 1)
    const memory = 62_000 + 2 * 16 * 48
    const ring = { swarm, workers: [swarm.worker('a', memory), swarm.worker('b', memory)] }
    const asker = swarm.join('asker', 'asker')
    return { ...ring, asker, ask: (name: string) => swarm.ask(asker, name, { maxTokens: 13 }) }
  }
  /** Answers that run on a device. */
  const on = ({ swarm }: { swarm: FakeSwarm }, peer: string) =>
    [...swarm.service.state().requests.values()].filter(
      ({ phase, stages }) => phase === 'running' && stages[0]?.peer === peer,
    )

  test('RE11 without it nothing moves, until there is some', () => {
    const ring = twoDevices()
    for (const name of ['r1', 'r2', 'r3', 'r4']) ring.ask(name)
    expect([on(ring, 'a'), on(ring, 'b')].map(({ length }) => length)).toEqual([2, 2])
    byPeer(ring, 'a').say(pledgeOf(0))
    ring.swarm.pass(1_000)
    expect(on(ring, 'a')).toHaveLength(2)
    const [one] = on(ring, 'b')
    if (one) ring.asker.say({ kind: 'cancel', request: one.request })
    ring.swarm.pass(500)
    expect([on(ring, 'a'), on(ring, 'b')].map(({ length }) => length)).toEqual([1, 2])
  })

  test('RE11 what is kept of answers that are over makes room', () => {
    const ring = twoDevices()
    ring.ask('r1')
    for (const [index, name] of ['r2', 'r3'].entries()) {
      ring.ask(name)
      const [{ session, epoch } = requestOf(ring)] = on(ring, 'b')
      if (session === null) throw new Error(`${name} is not on b`)
      for (let position = 3; position < 13; position += 1)
        byPeer(ring, 'b').say({
          kind: 'session-token',
          session,
          epoch,
          position,
          sampled: sampled(20 + index),
        })
      endAnswer(byPeer(ring, 'b'), { session, epoch }, 13)
      ring.swarm.pass(100)
    }
    const { retained } = ring.swarm.service.state()
    const [oldest, newest] = [...retained.keys()]
    expect(retained.size).toBe(2)
    byPeer(ring, 'a').say(pledgeOf(0))
    ring.swarm.pass(500)
    expect(on(ring, 'b')).toHaveLength(1)
    expect([...ring.swarm.service.state().retained.keys()]).toEqual([newest])
    expect(byPeer(ring, 'b').last('session-close')).toMatchObject({
      session: oldest,
      retain: false,
    })
  })

  test('RE12 what a device keeps of an answer that left it takes room there', () => {
    const ring = twoDevices()
    ring.ask('r1')
    ring.ask('r2')
    byPeer(ring, 'a').say(pledgeOf(0))
    ring.swarm.pass(200)
    expect(on(ring, 'b')).toHaveLength(2)
    byPeer(ring, 'a').say(pledgeOf(62_000 + 2 * 16 * 48))
    for (const name of ['r3', 'r4']) ring.ask(name)
    ring.swarm.pass(200)
    expect(on(ring, 'a')).toHaveLength(1)
    token(ring, 13)
    expect(on(ring, 'a')).toHaveLength(2)
  })
})

describe('a move that breaks', () => {
  test.each(['fails', 'leaves'])(
    'RE12 where the new holder %s the answer goes back to the device that it left, as a last resort',
    (how) => {
      const ring = answering(2)
      const paused = at(ring.chain, 1)
      paused.say(pledgeOf(0))
      ring.swarm.pass(200)
      const replica = byPeer(ring, stagesOf(ring)[1])
      expect(replica).not.toBe(paused)
      const { session, epoch } = requestOf(ring)
      if (session === null) throw new Error('no session')
      const error = { code: 'stage-failed', message: 'device lost' }
      if (how === 'leaves') replica.say({ kind: 'leave' })
      else replica.say({ kind: 'session-failed', session, epoch, error })
      ring.swarm.pass(200)
      expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 3, repairs: 1 })
      expect(stagesOf(ring)[1]).toBe(paused.peer)
      expect(paused.all('session-close')).toEqual([])
      token(ring, 13)
      ring.swarm.pass(HANDOVER_PAUSE_MS / 2)
      expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 3 })
      expect(ring.asker.all('ask-token').map((one) => one.sampled.token)).toEqual([11, 12, 13])
    },
  )

  test('RE12 a third holder is better than the device that was left', () => {
    const ring = answering(3)
    const paused = at(ring.chain, 1)
    paused.say(pledgeOf(0))
    ring.swarm.pass(200)
    byPeer(ring, stagesOf(ring)[1]).say({ kind: 'leave' })
    ring.swarm.pass(200)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 3, repairs: 1 })
    expect(stagesOf(ring)).not.toContain(paused.peer)
    token(ring, 13)
    expect(paused.all('session-close')).toMatchObject([{ epoch: 1 }])
  })

  test('RE12 a device that drains stays in the route of an answer that breaks elsewhere, where nobody else holds its blocks', () => {
    const { ring, replica, copied, other } = withReplica()
    // It stays where it is.
    useReplica({ ring, replica, copied })
    other.say(pledgeOf(0))
    ring.swarm.pass(500)
    copied.say({ kind: 'leave' })
    ring.swarm.pass(500)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2, repairs: 1 })
    expect(stagesOf(ring)).toEqual(expect.arrayContaining([replica.peer, other.peer]))
  })

  test('RE12 an answer that is cancelled meanwhile frees the device that it left', () => {
    const ring = answering(2)
    const paused = at(ring.chain, 1)
    paused.say(pledgeOf(0))
    ring.swarm.pass(200)
    const { request, session } = requestOf(ring)
    ring.asker.say({ kind: 'cancel', request })
    ring.swarm.pass(200)
    expect(paused.all('session-close')).toMatchObject([{ session, epoch: 1, retain: false }])
    expect(paused.last('assign').range).toBeNull()
  })
})
