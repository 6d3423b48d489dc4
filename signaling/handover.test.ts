import { describe, expect, test } from 'vitest'
import { HANDOVER_HIDDEN_MS, HANDOVER_PAUSE_MS } from '../sdk/core/limits.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import {
  at,
  fakeSwarm,
  pledgeOf,
  type FakePeer,
  type FakeSwarm,
} from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf({ contextLength: 200 })
const MEMORY = 1e9
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })

type Ring = {
  readonly swarm: FakeSwarm
  readonly workers: FakePeer[]
  readonly asker: FakePeer
  /** The stages of the answer when it began. */
  readonly chain: readonly FakePeer[]
}

/** A chain of three devices, `copies` of each, and an answer that has two tokens. */
function answering(copies: number, over: Partial<ClientMessageOf<'ask'>> = {}): Ring {
  const swarm = fakeSwarm(model, 3)
  const workers = Array.from({ length: 3 * copies }, (_, index) => swarm.worker(`w${index}`))
  const asker = swarm.join('asker', 'asker')
  swarm.ask(asker, 'r1', { maxTokens: 90, ...over })
  const ring = { swarm, workers, asker, chain: [] }
  const chain = stagesOf(ring).map((peer) => byPeer(ring, peer))
  token(ring, 11)
  token(ring, 12)
  return { ...ring, chain }
}

const requestOf = ({ swarm }: Pick<Ring, 'swarm'>, index = 0) =>
  at([...swarm.service.state().requests.values()], index)

const stagesOf = (ring: Pick<Ring, 'swarm'>, index = 0): string[] =>
  requestOf(ring, index).stages.map(({ peer }) => peer)

function byPeer({ workers }: Pick<Ring, 'workers'>, peer: string | undefined): FakePeer {
  const found = workers.find((worker) => worker.peer === peer)
  if (!found) throw new Error(`no ${peer}`)
  return found
}

/** The last stage of the present route says the next token. */
function token(ring: Pick<Ring, 'swarm' | 'workers'>, id: number): void {
  const { session, epoch, promptLength, answer, stages } = requestOf(ring)
  if (session === null) throw new Error('no session')
  const position = promptLength + (answer?.length ?? 0)
  byPeer(ring, stages.at(-1)?.peer).say({
    kind: 'session-token',
    session,
    epoch,
    position,
    sampled: sampled(id),
  })
  ring.swarm.pass(100)
}

/** Everybody else who holds the same blocks. */
function replicasOf(ring: Ring, worker: FakePeer): FakePeer[] {
  const { peers } = ring.swarm.service.state()
  const range = peers.get(worker.peer)?.assignment?.range
  return ring.workers.filter(
    (one) =>
      one !== worker &&
      peers.get(one.peer)?.assignment?.range?.start === range?.start &&
      range !== undefined,
  )
}

/** One device of the chain has a replica, and no other one. */
function withReplica(ignored: Parameters<FakeSwarm['worker']>[2] = []) {
  const ring = answering(1)
  const replica = ring.swarm.worker('replica', MEMORY, ignored)
  ring.workers.push(replica)
  const [copied] = replicasOf(ring, replica)
  const other = ring.chain.find((worker) => worker !== copied)
  if (!copied || !other) throw new Error('it copies nobody')
  return { ring, replica, copied, other }
}

/** A second answer goes through the replica. */
function useReplica({ ring, replica, copied }: Omit<ReturnType<typeof withReplica>, 'other'>) {
  copied.say(pledgeOf(MEMORY, true))
  ring.swarm.ask(ring.asker, 'r2', { maxTokens: 90 })
  copied.say(pledgeOf(MEMORY))
  expect(stagesOf(ring, 1)).toContain(replica.peer)
  const { session, epoch } = requestOf(ring, 1)
  if (session === null) throw new Error('no session')
  return { session, epoch }
}

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
      expect(requestOf(ring)).toMatchObject({ phase: 'running', epoch: 2, repairs: 0, valid: 4 })
      expect(byPeer(ring, stages[stage]).last('session-open')).toMatchObject({
        epoch: 2,
        answered: 2,
        valid: 4,
      })
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
    const swarm = fakeSwarm(model, 1)
    const workers = [swarm.worker('a'), swarm.worker('b')]
    swarm.ask(swarm.join('asker', 'asker'), 'r1', { maxTokens: 90 })
    const [first = ''] = stagesOf({ swarm })
    byPeer({ workers }, first).say(pledgeOf(0))
    swarm.pass(200)
    expect(stagesOf({ swarm })).not.toContain(first)
    expect(requestOf({ swarm })).toMatchObject({ phase: 'running', epoch: 2, valid: 2 })
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

  test('RE11 caches for which a replica has no room are not moved to it, until it has', () => {
    const small = modelOf()
    const swarm = fakeSwarm(small, 1)
    // Its weights, and two whole contexts.
    const memory = 62_000 + 2 * 16 * 48
    const workers = [swarm.worker('a', memory), swarm.worker('b', memory)]
    const asker = swarm.join('asker', 'asker')
    for (const name of ['r1', 'r2', 'r3', 'r4']) swarm.ask(asker, name, { maxTokens: 13 })
    const of = (peer: string) =>
      [0, 1, 2, 3].filter((index) => stagesOf({ swarm }, index)[0] === peer)
    expect([of('a'), of('b')].map(({ length }) => length)).toEqual([2, 2])
    byPeer({ workers }, 'a').say(pledgeOf(0))
    swarm.pass(1_000)
    expect(of('b')).toHaveLength(2)
    const { request } = requestOf({ swarm }, at(of('b'), 0))
    asker.say({ kind: 'cancel', request })
    swarm.pass(500)
    const running = [...swarm.service.state().requests.values()].filter(
      ({ phase }) => phase === 'running',
    )
    expect(running.filter(({ stages }) => stages[0]?.peer === 'b')).toHaveLength(2)
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
