import { describe, expect, test } from 'vitest'
import { ABSENT_MS, DEAD_MS, SESSION_STALL_MS } from '../sdk/core/limits.ts'
import { GREEDY } from '../sdk/core/sampling/params.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import {
  at,
  endAnswer,
  fakeSwarm,
  type FakePeer,
  type FakeSwarm,
} from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf()
const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })

/** A chain of three devices, `copies` of each, and an answer that has two tokens: prompt 5 6 7, then 11 12. */
function answering(copies: number, over = {}) {
  const swarm = fakeSwarm(model, 3)
  const workers = Array.from({ length: 3 * copies }, (_, index) => swarm.worker(`w${index}`))
  const asker = swarm.join('asker', 'asker')
  swarm.ask(asker, 'r1', { maxTokens: 9, ...over })
  const { session, stages } = at(workers, 0).last('session-open')
  const byPeer = (peer: string | undefined): FakePeer => {
    const found = workers.find((worker) => worker.peer === peer)
    if (!found) throw new Error(`no ${peer}`)
    return found
  }
  const chain = stages.map(({ peer }) => byPeer(peer))
  const head = { session, epoch: 1 }
  at(chain, 2).say({ kind: 'session-token', ...head, position: 3, sampled: sampled(11) })
  at(chain, 2).say({ kind: 'session-token', ...head, position: 4, sampled: sampled(12) })
  return { swarm, workers, asker, chain, head }
}

const requestOf = (swarm: FakeSwarm) => swarm.service.snapshot().requests[0]

describe('repair', () => {
  test('RE1 RE2 a replica takes over in the same session and a new epoch, and only the one before it sends again', () => {
    const { swarm, workers, asker, chain, head } = answering(2)
    at(chain, 1).say({ kind: 'leave' })
    const replica = workers.find(
      (worker) => !chain.includes(worker) && worker.all('session-open').length > 0,
    )
    if (!replica) throw new Error('nobody took over')
    const order = replica.last('session-open')
    expect(order).toMatchObject({
      ...head,
      epoch: 2,
      stage: 1,
      answered: 2,
      promptLength: 3,
      valid: 4,
    })
    // Those that stay have all rows but the last one.
    for (const worker of [at(chain, 0), at(chain, 2)])
      worker.say({ kind: 'session-ready', ...head, epoch: 2, cached: 4, kept: 4 })
    swarm.pass(100)
    expect(asker.all('ask-end')).toEqual([])
    expect(requestOf(swarm)).toMatchObject({ repairs: 1 })
  })

  test('RE2 RE3 what each stage must do comes from what each one has', () => {
    const swarm = fakeSwarm(model, 3)
    const workers = ['a', 'b', 'c', 'd'].map((name) => swarm.worker(name, 1e9, ['session-open']))
    const asker = swarm.join('asker', 'asker')
    swarm.ask(asker, 'r1', { maxTokens: 9 })
    const chain = workers.filter((worker) => worker.all('session-open').length > 0)
    const ready = (worker: FakePeer, cached: number) => {
      const { session, epoch } = worker.last('session-open')
      worker.say({ kind: 'session-ready', session, epoch, cached, kept: cached })
      swarm.pass(100)
    }
    for (const worker of chain) ready(worker, 0)
    const { session, stages } = at(chain, 0).last('session-open')
    const last = workers.find(({ peer }) => peer === stages[2]?.peer)
    last?.say({ kind: 'session-token', session, epoch: 1, position: 3, sampled: sampled(11) })
    const [replica] = workers.filter((worker) => !chain.includes(worker))
    const range = swarm.service.state().peers.get(at(workers, 3).peer)?.assignment?.range
    const lost = stages.findIndex((stage) => stage.range.start === range?.start)
    workers.find(({ peer }) => peer === stages[lost]?.peer)?.handle.closed()
    const now = at(replica ? [replica] : [], 0).last('session-open')
    const holders = now.stages.map(({ peer }) => workers.find((worker) => worker.peer === peer))
    holders.forEach((worker, stage) => worker && ready(worker, stage === lost ? 0 : 3))
    const starts = holders.map((worker) => worker?.last('session-start'))
    expect(starts.map((start) => start?.epoch)).toEqual([2, 2, 2])
    expect(starts.map((start) => start?.from)).toEqual(
      [0, 1, 2].map((stage) => (stage === lost ? 0 : 3)),
    )
    expect(starts[0]?.prompt).toEqual(lost === 0 ? [5, 6, 7, 11] : [11])
    if (lost > 0) expect(starts[lost - 1]?.forward).toBe(0)
  })

  test('RE4 tokens of the former epoch come too late; those of the new one go on without a gap', () => {
    const { swarm, workers, asker, chain, head } = answering(2)
    at(chain, 0).handle.closed()
    swarm.pass(100)
    at(chain, 2).say({ kind: 'session-token', ...head, position: 5, sampled: sampled(99) })
    const last = workers.find(
      (worker) =>
        worker.all('session-open').at(-1)?.stage === 2 &&
        worker.all('session-open').at(-1)?.epoch === 2,
    )
    last?.say({ kind: 'session-token', ...head, epoch: 2, position: 5, sampled: sampled(13) })
    expect(
      asker.all('ask-token').map(({ position, sampled: { token } }) => [position, token]),
    ).toEqual([
      [3, 11],
      [4, 12],
      [5, 13],
    ])
  })

  test('RE1 the last stage of the new route gets the answer so far where its sampler needs it', () => {
    const sampling = { ...GREEDY, repetitionPenalty: 1.2, logitBias: [] }
    const { swarm, workers, chain } = answering(2, { sampling })
    at(chain, 2).say({ kind: 'leave' })
    swarm.pass(100)
    const orders = workers.map((worker) => worker.all('session-open').at(-1))
    const order = orders.find((one) => one?.epoch === 2 && one.stage === 2)
    expect(order).toMatchObject({ history: [5, 6, 7, 11, 12], answered: 2 })
  })

  test.each([
    ['more rows than hold', { cached: 5, kept: 5 }],
    ['more to send than it has', { cached: 2, kept: 3 }],
  ])(
    'RE5 RE1 a stage that claims %s breaks the route at once, and another one takes over',
    (_, rows) => {
      const { swarm, workers, chain, head } = answering(2)
      at(chain, 1).say({ kind: 'leave' })
      const [first] = chain
      first?.say({ kind: 'session-ready', ...head, epoch: 2, ...rows })
      expect(swarm.service.state().peers.get(at(chain, 0).peer)?.strikes).toBe(1)
      swarm.pass(200)
      const { stages, epoch } = at(workers, 5).last('session-open')
      expect(epoch).toBe(3)
      expect(stages.map(({ peer }) => peer)).not.toContain(first?.peer)
    },
  )

  test.each([
    ['a token of the model', 2, {}, 'stop'],
    ['a token of the asker', 40, { stopIds: [40] }, 'stop'],
    ['its length', 13, { maxTokens: 3 }, 'length'],
  ])(
    'RE10 an answer that is ended by %s is not opened again when its last stage leaves at once',
    (_by, token, over, reason) => {
      const { swarm, asker, chain, head } = answering(2, over)
      const last = at(chain, 2)
      last.say({ kind: 'session-token', ...head, position: 5, sampled: sampled(token) })
      last.say({ kind: 'leave' })
      swarm.pass(100)
      expect(asker.all('ask-end')).toMatchObject([{ request: 'r1', reason }])
      expect(requestOf(swarm)).toMatchObject({ state: 'done', tokens: 3, repairs: 0 })
    },
  )

  test('RE6 a device that comes back within the time goes on with its answer', () => {
    const { swarm, asker, chain } = answering(1)
    const lost = at(chain, 1)
    lost.handle.closed()
    swarm.pass(2_000)
    expect(requestOf(swarm)).toMatchObject({ state: 'repairing', tokens: 2 })
    const back = swarm.worker(lost.peer)
    swarm.pass(500)
    expect(back.last('session-open')).toMatchObject({ epoch: 2, stage: 1 })
    expect(requestOf(swarm)).toMatchObject({ state: 'running', tokens: 2, repairs: 1 })
    expect(asker.all('ask-end')).toEqual([])
  })
})

describe('silence', () => {
  const beat: ClientMessageOf<'beat'> = { kind: 'beat', computing: false, sessions: [] }

  /** Time passes in which all but one beat. */
  function passWithout(
    swarm: FakeSwarm,
    workers: readonly FakePeer[],
    silent: FakePeer,
    ms: number,
  ): void {
    for (let left = ms; left > 0; left -= 500) {
      for (const worker of workers) if (worker !== silent) worker.say(beat)
      swarm.pass(500)
    }
  }

  test('HB7 a device that is connected and not heard is noticed in three seconds, and its answers go round it', () => {
    const { swarm, workers, chain, asker } = answering(2)
    const silent = at(chain, 1)
    for (const worker of workers) worker.say(beat)
    passWithout(swarm, workers, silent, DEAD_MS - 500)
    expect(requestOf(swarm)).toMatchObject({ repairs: 0 })
    passWithout(swarm, workers, silent, 1_000)
    expect(requestOf(swarm)).toMatchObject({ repairs: 1, state: 'running' })
    expect(requestOf(swarm)?.stages).not.toContain(silent.peer)
    expect(asker.all('ask-end')).toEqual([])
    // The last word of the former epoch reaches it when it is there again.
    expect(silent.all('session-close')).toHaveLength(1)
    silent.say(beat)
    expect(swarm.service.state().peers.get(silent.peer)?.silence).toBeNull()
  })

  test('HB8 answers go round a page that says it will be frozen, at once; awake it counts again', () => {
    const { swarm, workers, chain, asker } = answering(2)
    const frozen = at(chain, 1)
    for (const worker of workers) worker.say(beat)
    frozen.say({ ...beat, asleep: true })
    swarm.pass(100)
    expect(requestOf(swarm)).toMatchObject({ repairs: 1, state: 'running' })
    expect(requestOf(swarm)?.stages).not.toContain(frozen.peer)
    expect(asker.all('ask-end')).toEqual([])
    passWithout(swarm, workers, frozen, ABSENT_MS + 1_000)
    expect(swarm.service.state().peers.get(frozen.peer)?.silence).toBe('long')
    frozen.say(beat)
    expect(swarm.service.state().peers.get(frozen.peer)?.silence).toBeNull()
  })

  test('HB7 blocks of a device that is silent for long go to others, and it is welcome back', () => {
    const swarm = fakeSwarm(model, 1)
    const [first, second] = [swarm.worker('first'), swarm.join('second')]
    first.say(beat)
    swarm.pass(ABSENT_MS + 500)
    expect(swarm.service.state().peers.get(first.peer)?.silence).toBe('long')
    expect(swarm.service.snapshot().complete).toBe(false)
    expect(second.all('assign')).toEqual([])
    first.say(beat)
    expect(swarm.service.snapshot().complete).toBe(true)
  })

  test('HB7 while the host itself stood still nobody was silent', () => {
    let now = 0
    const swarm = fakeSwarm(model, 1, { now: () => now })
    const worker = swarm.worker('w0')
    worker.say(beat)
    swarm.service.tick()
    now = 60_000
    swarm.service.tick()
    expect(swarm.service.state().peers.get(worker.peer)?.silence).toBeNull()
    for (let tick = 0; tick < 40; tick += 1) {
      now += 100
      swarm.service.tick()
    }
    expect(swarm.service.state().peers.get(worker.peer)?.silence).toBe('short')
  })

  test('SE10 where no stage computes or gets on a frame was lost: a new epoch, long before the idle limit', () => {
    const { swarm, workers, chain } = answering(1)
    const nobody = swarm.join('watcher', 'watcher')
    passWithout(swarm, workers, nobody, SESSION_STALL_MS - 1_000)
    const { session } = at(chain, 0).last('session-open')
    at(chain, 0).say({ ...beat, sessions: [{ session, epoch: 1, position: 40 }] })
    passWithout(swarm, workers, nobody, SESSION_STALL_MS - 1_000)
    expect(requestOf(swarm)).toMatchObject({ repairs: 0 })
    passWithout(swarm, workers, nobody, 5_000)
    expect(requestOf(swarm)).toMatchObject({ repairs: 1 })
  })

  test('SE10 HB7 rows that can not be there yet hold nothing up', () => {
    const { swarm, workers, chain } = answering(1)
    const { session } = at(chain, 0).last('session-open')
    const nobody = swarm.join('watcher', 'watcher')
    for (let position = 40; position < 60; position += 1) {
      at(chain, 0).say({ ...beat, sessions: [{ session, epoch: 1, position }] })
      passWithout(swarm, workers, nobody, 1_000)
    }
    expect(requestOf(swarm)).toMatchObject({ repairs: 1 })
  })

  test.each([
    ['the first link', [5, 4, 4], [1, 1, 0], [0, 0, 0]],
    ['the second link', [5, 5, 4], [0, 1, 1], [0, 0, 0]],
    ['the way back', [4, 4, 4], [1, 0, 1], [0, 0, 0]],
    ['no link, but the last stage', [5, 5, 5], [0, 0, 0], [0, 0, 1]],
    ['no link, but a stage that computed nothing', [0, 0, 0], [0, 0, 0], [1, 0, 0]],
    ['no link, but a stage in the middle of the prompt', [2, 2, 2], [0, 0, 0], [1, 0, 0]],
  ])(
    'SE10 where rows stopped at %s the right ones are held to account',
    (_, rows, doubts, strikes) => {
      const { swarm, workers, chain, head } = answering(2)
      for (let half = 0; half < (SESSION_STALL_MS + 1_000) / 500; half += 1) {
        for (const worker of workers) {
          const position = rows[chain.indexOf(worker)]
          const sessions = position === undefined ? [] : [{ ...head, position }]
          worker.say({ ...beat, sessions })
        }
        swarm.pass(500)
      }
      const peers = chain.map(({ peer }) => swarm.service.state().peers.get(peer))
      expect(peers.map((peer) => peer?.doubts)).toEqual(doubts)
      expect(peers.map((peer) => peer?.strikes)).toEqual(strikes)
      const held = chain.filter((_peer, stage) => doubts[stage] === 1 || strikes[stage] === 1)
      for (const { peer } of held) expect(requestOf(swarm)?.stages).not.toContain(peer)
    },
  )

  test('SE10 a device that alone computes an answer and keeps its tokens back is held to account', () => {
    const swarm = fakeSwarm(model, 1)
    const workers = ['w0', 'w1'].map((name) => swarm.worker(name))
    const asker = swarm.join('asker', 'asker')
    swarm.pass(1_000)
    swarm.ask(asker, 'r1')
    swarm.pass(100)
    const mute = at(asker.last('ask-accepted').stages, 0).peer
    const [own, other] = workers.toSorted((one) => (one.peer === mute ? -1 : 1)) as [
      FakePeer,
      FakePeer,
    ]
    const { session } = own.last('session-open')
    own.say({ ...beat, sessions: [{ session, epoch: 1, position: 3 }] })
    passWithout(swarm, workers, asker, SESSION_STALL_MS + 1_000)
    expect(swarm.service.state().peers.get(mute)?.strikes).toBe(1)
    expect(other.last('session-open')).toMatchObject({ epoch: 2, stage: 0 })
  })

  test('SE10 a stage that computes has until the idle limit', () => {
    const { swarm, workers, chain } = answering(1)
    const slow = at(chain, 2)
    for (let seconds = 0; seconds < 60; seconds += 1) {
      slow.say({ ...beat, computing: true })
      for (const worker of workers) if (worker !== slow) worker.say(beat)
      swarm.pass(1_000)
    }
    expect(requestOf(swarm)).toMatchObject({ repairs: 0, state: 'running' })
  })
})

test('RE1 of two holders the one is taken at which no link broke, until it had a part in a good answer', () => {
  const { swarm, workers, asker, chain, head } = answering(2)
  const [liar, victim] = [at(chain, 0), at(chain, 1)]
  const error = { code: 'stage-lost', message: 'bye: bad-frame: checksum' }
  liar.say({ kind: 'session-failed', ...head, error })
  swarm.pass(200)
  const doubts = (worker: FakePeer) => swarm.service.state().peers.get(worker.peer)?.doubts
  expect([liar, victim].map(doubts)).toEqual([1, 1])
  const stages = requestOf(swarm)?.stages ?? []
  expect(stages).not.toContain(liar.peer)
  expect(stages).not.toContain(victim.peer)
  const last = workers.find(({ peer }) => peer === stages.at(-1))
  if (last === undefined) throw new Error('no last stage')
  endAnswer(last, { ...head, epoch: 2 }, 5)
  expect([liar, victim].map(doubts)).toEqual([0.75, 0.75])
  swarm.ask(asker, 'again')
  expect(requestOf(swarm)?.state).toBe('done')
  expect(swarm.service.snapshot().requests.at(-1)?.stages).not.toContain(liar.peer)
})

test('RE6 a route that breaks at once is tried again with growing pauses, not a hundred times', () => {
  const { swarm, chain, asker } = answering(1)
  const [first] = chain
  const error = { code: 'stage-lost', message: 'the link to the next stage closed' }
  for (let tenths = 0; tenths < 100; tenths += 1) {
    const { session, epoch } = first?.last('session-open') ?? {}
    if (session === undefined || epoch === undefined) throw new Error('nothing was opened')
    first?.say({ kind: 'session-failed', session, epoch, error })
    swarm.pass(100)
  }
  const tries = requestOf(swarm)?.repairs ?? 0
  expect(tries).toBeGreaterThan(4)
  expect(tries).toBeLessThan(10)
  expect(asker.all('ask-end')).toEqual([])
})

test('beats alone are no news: nobody is sent the same snapshot every second', () => {
  const { swarm, workers, asker } = answering(1)
  swarm.pass(1_000)
  const shown = asker.all('swarm').length
  for (let seconds = 0; seconds < 5; seconds += 1) {
    for (const worker of workers) worker.say({ kind: 'beat', computing: false, sessions: [] })
    swarm.pass(1_000)
  }
  expect(asker.all('swarm')).toHaveLength(shown)
})
