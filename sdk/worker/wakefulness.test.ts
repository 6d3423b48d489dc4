import { expect, test } from 'vitest'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import { settle } from '../../test/support/manual-timers.ts'
import type { SessionsProgress } from './sessions.ts'
import { createWakefulness } from './wakefulness.ts'

const IDLE: SessionsProgress = { computing: false, sessions: [] }

/** A device whose clock the test moves; `told`: `beat` or `asleep` for each message. */
function setUp(progress: () => Promise<SessionsProgress> = () => Promise.resolve(IDLE)) {
  let now = 0
  const told: string[] = []
  const wakefulness = createWakefulness({
    sessions: { progress },
    tell: (message: ClientMessage) =>
      told.push(message.kind === 'beat' && message.asleep === true ? 'asleep' : message.kind),
    announce: () => told.push('all'),
    wallNow: () => now,
  })
  const tickAfter = async (ms: number): Promise<string[]> => {
    now += ms
    wakefulness.tick()
    await settle()
    return told.splice(0)
  }
  return { wakefulness, told, tickAfter }
}

test('HB7 beats at every tick, also at the slow ones of a hidden tab', async () => {
  const { tickAfter } = setUp()
  expect(await tickAfter(1_000)).toEqual(['beat'])
  expect(await tickAfter(4_000)).toEqual(['beat'])
})

test('HB8 a clock that jumped brings everything again, once', async () => {
  const { tickAfter } = setUp()
  expect((await tickAfter(60_000)).sort()).toEqual(['all', 'beat'])
  expect(await tickAfter(1_000)).toEqual(['beat'])
})

test('HB8 the last word before a freeze is the last one', async () => {
  let answer: (progress: SessionsProgress) => void = () => undefined
  const { wakefulness, told, tickAfter } = setUp(() => new Promise((give) => (answer = give)))
  await tickAfter(1_000)
  wakefulness.sleep()
  answer(IDLE)
  await settle()
  expect(told.splice(0)).toEqual(['asleep'])
  expect(await tickAfter(1_000)).toEqual([])
  wakefulness.wake()
  answer(IDLE)
  await settle()
  expect(told.sort()).toEqual(['all', 'beat'])
})

test('HB8 a thaw that nobody told of is seen by the clock; one that needs no waking says nothing', async () => {
  const { wakefulness, told, tickAfter } = setUp()
  wakefulness.wake()
  expect(told).toEqual([])
  wakefulness.sleep()
  told.length = 0
  expect((await tickAfter(30_000)).sort()).toEqual(['all', 'beat'])
})
