import { expect, test } from 'vitest'
import { REJOIN_MS, REPAIR_MS } from '../sdk/core/limits.ts'
import { at, fakeRing, type FakePeer } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

/** A ring of two whose host can stand still: only `stall` and `pass` move its clock. */
function setUp() {
  let now = 1_000
  const { swarm, workers, asker } = fakeRing(modelOf(), 2, { now: () => now })
  const beat = (worker: FakePeer): void =>
    worker.say({ kind: 'beat', computing: false, sessions: [] })
  swarm.ask(asker, 'r1')
  workers.forEach(beat)
  return {
    swarm,
    workers,
    asker,
    beat,
    request: () => at([...swarm.service.state().requests.values()], 0),
    stall(ms: number) {
      now += ms
    },
    pass(ms: number) {
      for (let left = ms; left > 0; left -= 100) {
        now += 100
        swarm.service.tick()
        swarm.pass(0)
      }
    },
  }
}

test('HB7 RE6 an answer that was in repair, and the place of a device that dropped, outlive the sleep of the host', () => {
  const { swarm, workers, asker, request, stall, pass } = setUp()
  const lost = at(workers, 0)
  lost.handle.closed()
  pass(200)
  expect(request().phase).toBe('repairing')
  stall(REPAIR_MS * 2)
  swarm.service.tick()
  expect(asker.all('ask-end')).toEqual([])
  expect(swarm.service.state().peers.has(lost.peer)).toBe(true)
  // From here on the limits go on.
  pass(REJOIN_MS)
  expect(swarm.service.state().peers.has(lost.peer)).toBe(false)
})

test('HB7 a message that is read before the first tick after a stall makes nobody else silent', () => {
  const { workers, request, beat, stall, pass } = setUp()
  stall(3_500)
  for (const worker of workers) {
    beat(worker)
    expect(request()).toMatchObject({ phase: 'running', epoch: 1 })
  }
  pass(200)
  expect(request()).toMatchObject({ phase: 'running', epoch: 1 })
})

test('HB7 a step of the host that takes long makes nobody silent', () => {
  const { swarm, request, beat, workers, stall } = setUp()
  // Whatever takes so long happens while an event is carried out.
  const asker = swarm.join('slow', 'asker')
  Object.assign(asker, { send: () => stall(3_500) })
  swarm.ask(asker, 'r2')
  swarm.service.tick()
  expect(request()).toMatchObject({ phase: 'running', epoch: 1 })
  workers.forEach(beat)
  expect(request().epoch).toBe(1)
})
