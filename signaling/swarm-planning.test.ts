import { expect, test } from 'vitest'
import { at, fakeRing, fakeSwarm, type FakePeer } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

/** Six layers and a head that is worth a tenth of one. */
const model = modelOf()
let steps = 0

function computes(peer: FakePeer, stepMs: number, times = 1): void {
  const { assignment } = peer.last('assign')
  for (let time = 0; time < times; time++) {
    steps += 1
    peer.say({ kind: 'stage-stats', assignment, steps, tokens: steps, stepMs })
  }
}

const rangeOf = (peer: FakePeer): string => {
  const { range } = peer.last('assign')
  return range === null ? 'spare' : `${range.start}-${range.end}`
}

test('ST3 a stage that got clearly slower is replaced, the new one loads first, and speeds are kept', () => {
  const swarm = fakeSwarm(model, 2)
  const slow = swarm.worker('w0')
  const spare = swarm.worker('w1')
  const fast = swarm.worker('w2')
  expect([slow, spare, fast].map(rangeOf)).toEqual(['0-4', '4-8', '4-8'])
  computes(slow, 30)
  computes(spare, 31)
  computes(fast, 3.1)
  swarm.pass(1_000)
  expect([slow, spare, fast].map(rangeOf)).toEqual(['0-4', '4-8', '4-8'])
  // A fifth more is noise.
  computes(slow, 36, 20)
  swarm.pass(1_000)
  expect(spare.all('assign')).toHaveLength(1)
  computes(slow, 120, 20)
  swarm.pass(1_000)
  expect([slow, spare, fast].map(rangeOf)).toEqual(['0-4', '0-4', '4-8'])
  expect(spare.last('assign').reason).toMatch(/^makes the ring faster/)
  const state = swarm.service.state()
  expect(state.peers.get(spare.peer)).toMatchObject({ stepMs: null, speed: { settledMs: 10 } })
  expect(state.route?.map(({ peer }) => peer)).toEqual(['w1', 'w2'])
  expect(swarm.service.snapshot().plan).toMatchObject({ stages: 2, missing: [], advice: '' })
})

test('a lap is predicted from what was measured, with the answers that run already', () => {
  const { swarm, workers, asker } = fakeRing(model, 2)
  swarm.ask(asker, 'before')
  computes(at(workers, 0), 30)
  computes(at(workers, 1), 31)
  asker.say({ kind: 'cancel', request: 'before' as never })
  swarm.ask(asker, 'alone')
  swarm.ask(asker, 'second')
  const requests = swarm.service.snapshot().requests.slice(-3)
  expect(requests.map(({ predictionMeasured }) => predictionMeasured)).toEqual([false, true, true])
  // Two hops over direct links with a round trip of 1 ms.
  expect(requests[1]?.predictedLapMs).toBeCloseTo(30 + 31 + 2)
  // The first answer is at each of the two stages half of the time.
  expect(requests[2]?.predictedLapMs).toBeCloseTo(1.5 * (30 + 31) + 2)
})

test('devices that fit no span keep pieces, and say so', () => {
  const swarm = fakeSwarm(model, 2)
  swarm.worker('w0')
  swarm.worker('w1')
  const small = swarm.worker('small', 23_000)
  expect(small.last('assign')).toMatchObject({ range: null, keep: { start: 4, end: 6 } })
  const { plan, peers } = swarm.service.snapshot()
  expect(plan.devices[2]).toMatchObject({ range: null, keep: { start: 4, end: 6 }, bytes: 0 })
  expect(peers[2]?.note).toBe('spare: keeps layers 4–5 ready to step in')
})
