import { expect, test } from 'vitest'
import { at, fakeSwarm, pledgeOf } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })

/** Two devices that hold the whole model each, and an answer that the first of them computes. */
function answering() {
  const swarm = fakeSwarm(modelOf(), 1)
  const workers = [swarm.worker('a'), swarm.worker('b')]
  const asker = swarm.join('asker', 'asker')
  swarm.ask(asker, 'r1', { maxTokens: 3 })
  const busy = at(
    workers.filter((worker) => worker.all('session-open').length > 0),
    0,
  )
  const other = at(
    workers.filter((worker) => worker !== busy),
    0,
  )
  return { swarm, busy, other, asker, session: busy.last('session-open').session }
}

test('a paused device ends its answer, gets no new one, and then has nothing to hold', () => {
  const { swarm, busy, other, asker, session } = answering()
  const held = busy.last('assign').assignment
  busy.say(pledgeOf(0))
  swarm.pass(500)
  expect(busy.last('assign').assignment).toBe(held)
  swarm.ask(asker, 'r2')
  swarm.pass(100)
  expect(busy.all('session-open')).toHaveLength(1)
  expect(other.all('session-open')).toHaveLength(1)
  for (const [index, token] of [11, 12, 13].entries())
    busy.say({
      kind: 'session-token',
      session,
      epoch: 1,
      position: 3 + index,
      sampled: sampled(token),
    })
  busy.say({ kind: 'session-end', session, epoch: 1, reason: 'length' })
  swarm.pass(500)
  expect(asker.all('ask-end')).toMatchObject([{ request: 'r1', reason: 'length' }])
  expect(swarm.service.snapshot().requests.find(({ tokens }) => tokens === 3)).toMatchObject({
    repairs: 0,
  })
  expect(busy.last('assign').range).toBeNull()
})

test('a device that leaves while it is paused hands its answer to another one', () => {
  const { swarm, busy, other, asker, session } = answering()
  busy.say({ kind: 'session-token', session, epoch: 1, position: 3, sampled: sampled(11) })
  busy.say(pledgeOf(0))
  busy.say({ kind: 'leave' })
  swarm.pass(100)
  expect(other.last('session-open')).toMatchObject({ session, epoch: 2, answered: 1 })
  expect(asker.all('ask-end')).toEqual([])
})
