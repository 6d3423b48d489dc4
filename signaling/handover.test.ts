import { describe, expect, test } from 'vitest'
import { HANDOVER_HIDDEN_MS, HANDOVER_PAUSE_MS } from '../sdk/core/limits.ts'
import { at, fakeSwarm, pledgeOf, type FakePeer } from '../test/support/fake-swarm.ts'
import {
  answering,
  byPeer,
  LONG_MODEL,
  MEMORY,
  replicasOf,
  requestOf,
  stagesOf,
  token,
  useReplica,
  withReplica,
} from '../test/support/moving-answer.ts'

describe('a device that drains', () => {
  test.each([0, 1, 2])(
    'RE11 RE12 stage %i is paused: its answer moves to a replica, nobody is blamed, and it is free with the next token',
    (stage) => {
      const ring = answering(2)
      const paused = at(ring.chain, stage)
      paused.say(pledgeOf(0))
      ring.swarm.pass(200)
      const stages = stagesOf(ring)
      expect(stages).not.toContain(paused.peer)
      expect(stages.filter((peer) => ring.chain.some((one) => one.peer === peer))).toHaveLength(2)
      expect(requestOf(ring)).toMatchObject({
        phase: 'running',
        epoch: 2,
        repairs: 0,
        valid: [4, 4, 4],
      })
      expect(byPeer(ring, stages[stage]).last('session-open')).toMatchObject({
        epoch: 2,
        answered: 2,
        valid: 4,
      })
      // Also when there is a new plan meanwhile.
      paused.say(pledgeOf(0))
      expect(paused.all('session-close')).toEqual([])
      expect(paused.last('assign').range).not.toBeNull()
      token(ring, 13)
      const { session } = requestOf(ring)
      expect(paused.all('session-close')).toMatchObject([{ session, epoch: 1, retain: false }])
      expect(paused.last('assign').range).toBeNull()
      for (const peer of ring.swarm.service.state().peers.values())
        expect(peer).toMatchObject({ strikes: 0, doubts: 0, setAside: null })
      expect(ring.asker.all('ask-token').map((one) => one.sampled.token)).toEqual([11, 12, 13])
      expect(ring.asker.all('ask-end')).toEqual([])
    },
  )

  test('RE11 a prompt that is still computed moves too', () => {
    const swarm = fakeSwarm(LONG_MODEL, 1)
    const workers = [swarm.worker('a'), swarm.worker('b')]
    swarm.ask(swarm.join('asker', 'asker'), 'r1', { maxTokens: 90 })
    const [first = ''] = stagesOf({ swarm })
    byPeer({ workers }, first).say(pledgeOf(0))
    swarm.pass(200)
    expect(stagesOf({ swarm })).not.toContain(first)
    expect(requestOf({ swarm })).toMatchObject({ phase: 'running', epoch: 2, valid: [2] })
  })

  test('RE11 each of its answers moves, one after the other', () => {
    const ring = answering(2)
    for (const name of ['r2', 'r3']) ring.swarm.ask(ring.asker, name, { maxTokens: 90 })
    for (const worker of replicasOf(ring, at(ring.chain, 1))) worker.say(pledgeOf(0))
    ring.swarm.pass(200)
    const all = () => [0, 1, 2].map((index) => stagesOf(ring, index)[1])
    expect(new Set(all())).toEqual(new Set([at(ring.chain, 1).peer]))
    const back = replicasOf(ring, at(ring.chain, 1))
    for (const worker of back) worker.say(pledgeOf(MEMORY))
    ring.swarm.pass(200)
    at(ring.chain, 1).say(pledgeOf(0))
    ring.swarm.pass(200)
    expect(all()).not.toContain(at(ring.chain, 1).peer)
  })

  test('RE11 an answer that was just repaired moves behind its next token', () => {
    const swarm = fakeSwarm(LONG_MODEL, 1)
    const ring = { swarm, workers: [swarm.worker('a'), swarm.worker('b')] }
    swarm.ask(swarm.join('asker', 'asker'), 'r1', { maxTokens: 90 })
    const [first = ''] = stagesOf(ring)
    const { session } = requestOf(ring)
    if (session === null) throw new Error('no session')
    const error = { code: 'stage-lost', message: 'no matter' }
    byPeer(ring, first).say({ kind: 'session-failed', session, epoch: 1, error })
    byPeer(ring, first).say(pledgeOf(0))
    swarm.pass(1_000)
    expect(stagesOf(ring)).toEqual([first])
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2, repairs: 1 })
    token(ring, 13)
    expect(stagesOf(ring)).not.toContain(first)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 3, repairs: 1 })
  })

  test('RE11 without another holder its answers end here', () => {
    const ring = answering(1)
    at(ring.chain, 1).say(pledgeOf(0))
    ring.swarm.pass(5_000)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 1, moved: null })
    expect(at(ring.chain, 1).last('assign').range).not.toBeNull()
  })

  test('RE11 another holder that comes later takes over then', () => {
    const ring = answering(1)
    at(ring.chain, 1).say(pledgeOf(0))
    ring.swarm.pass(500)
    ring.workers.push(ring.swarm.worker('late'))
    ring.swarm.pass(500)
    expect(stagesOf(ring)[1]).toBe('late')
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2, repairs: 0 })
  })

  test.each(['hidden', 'paused', 'doubted', 'struck'])(
    'RE11 nothing moves to a device that is %s',
    (what) => {
      const { ring, replica, copied } = withReplica()
      if (what === 'hidden') replica.say(pledgeOf(MEMORY, true))
      if (what === 'paused') replica.say(pledgeOf(0))
      if (what === 'doubted' || what === 'struck') {
        const { session, epoch } = useReplica({ ring, replica, copied })
        const code = what === 'doubted' ? 'stage-lost' : 'stage-failed'
        const error = { code, message: 'no matter' }
        replica.say({ kind: 'session-failed', session, epoch, error })
      }
      copied.say(pledgeOf(0))
      ring.swarm.pass(1_000)
      expect(stagesOf(ring)).toContain(copied.peer)
      expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 1 })
    },
  )

  test('RE11 of two devices that drain the one is left that can be done without', () => {
    const { ring, replica, copied, other } = withReplica()
    for (const worker of [copied, other]) worker.say(pledgeOf(0))
    ring.swarm.pass(300)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2 })
    expect(stagesOf(ring)).toEqual(expect.arrayContaining([replica.peer, other.peer]))
  })

  test('RE11 the links of the new route come first; until they are open the old one goes on', () => {
    const { ring, replica, copied } = withReplica(['pair-open'])
    copied.say(pledgeOf(0))
    ring.swarm.pass(2_000)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 1 })
    token(ring, 13)
    for (const { pair, attempt } of replica.all('pair-open'))
      replica.say({ kind: 'link-state', pair, attempt, state: 'open', path: 'direct', rttMs: 1 })
    ring.swarm.pass(200)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2 })
    expect(stagesOf(ring)).not.toContain(copied.peer)
  })

  test('RE11 links that only the moved answer needs are made too', () => {
    const ring = answering(2)
    // The next question would go round it; an answer that runs has no reason to leave it yet.
    const shy = at(ring.chain, 2)
    shy.say(pledgeOf(MEMORY, true))
    ring.swarm.pass(100)
    expect(ring.swarm.service.state().route?.map(({ peer }) => peer)).not.toContain(shy.peer)
    at(ring.chain, 1).say(pledgeOf(0))
    ring.swarm.pass(500)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2 })
    expect(stagesOf(ring)[2]).toBe(shy.peer)
  })

  test('RE11 an answer that is all but over ends where it is', () => {
    const few = answering(2, { maxTokens: 6 })
    const over = answering(2)
    token(over, 2)
    for (const ring of [few, over]) {
      at(ring.chain, 1).say(pledgeOf(0))
      ring.swarm.pass(1_000)
      expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 1 })
    }
  })
})

describe('a page that is out of sight', () => {
  const hide = (worker: FakePeer, hidden = true) => worker.say(pledgeOf(MEMORY, hidden))

  test('RE11 hands its answers over once it stays so, and not because it flickers', () => {
    const ring = answering(2)
    const page = at(ring.chain, 1)
    for (let flip = 0; flip < 10; flip += 1) {
      hide(page, flip % 2 === 0)
      ring.swarm.pass(HANDOVER_HIDDEN_MS - 500)
    }
    expect(requestOf(ring)).toMatchObject({ epoch: 1 })
    hide(page)
    ring.swarm.pass(HANDOVER_HIDDEN_MS - 500)
    // Said again, e.g. after a reconnect.
    hide(page)
    expect(requestOf(ring)).toMatchObject({ epoch: 1 })
    ring.swarm.pass(1_000)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2, repairs: 0 })
    expect(stagesOf(ring)).not.toContain(page.peer)
    token(ring, 13)
    expect(page.last('session-close')).toMatchObject({ epoch: 1 })
    expect(page.last('assign').range).not.toBeNull()
  })

  test('RE11 an answer does not follow every page that is hidden: it moves once in a while', () => {
    const ring = answering(2)
    const page = at(ring.chain, 1)
    hide(page)
    ring.swarm.pass(HANDOVER_HIDDEN_MS + 500)
    const second = byPeer(ring, stagesOf(ring)[1])
    token(ring, 13)
    hide(second)
    hide(page, false)
    ring.swarm.pass(HANDOVER_PAUSE_MS - 2_000)
    expect(stagesOf(ring)[1]).toBe(second.peer)
    ring.swarm.pass(2_000)
    expect(stagesOf(ring)[1]).toBe(page.peer)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 3, repairs: 0 })
  })

  test('RE11 a device that is paused is left at once, whenever the answer moved last', () => {
    const ring = answering(3)
    const page = at(ring.chain, 1)
    page.say(pledgeOf(0))
    ring.swarm.pass(200)
    const second = byPeer(ring, stagesOf(ring)[1])
    second.say(pledgeOf(0))
    ring.swarm.pass(200)
    // One move at a time: this one is not over.
    expect(stagesOf(ring)[1]).toBe(second.peer)
    token(ring, 13)
    expect(stagesOf(ring)).not.toContain(second.peer)
    expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 3, repairs: 0 })
  })
})
