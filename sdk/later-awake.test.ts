import { expect, test } from 'vitest'
import { createManualTimers } from '../test/support/manual-timers.ts'
import { laterAwake } from './later-awake.ts'

function setUp() {
  const timers = createManualTimers()
  const later = laterAwake(
    (ms, task) => timers.after(ms, task),
    () => timers.now(),
  )
  const runs: number[] = []
  return { timers, runs, start: (ms: number) => later(ms, () => runs.push(timers.now())) }
}

test('a limit is up at its time on a device that is awake, and once', async () => {
  const { timers, runs, start } = setUp()
  start(12_345)
  start(100)
  await timers.advance(60_000)
  expect(runs).toEqual([100, 12_345])
  expect(timers.pending).toBe(0)
})

test('of the time that a page was frozen a part counts only', async () => {
  const { timers, runs, start } = setUp()
  start(60_000)
  await timers.advance(20_000)
  timers.sleep(600_000)
  // The thaw.
  await timers.advance(5_000)
  expect(runs).toEqual([])
  await timers.advance(15_000)
  expect(runs).toHaveLength(1)
})

test('what was called off never runs, whichever part of it was waited for', async () => {
  const { timers, runs, start } = setUp()
  start(60_000)()
  const cancel = start(60_000)
  await timers.advance(31_000)
  cancel()
  await timers.advance(60_000)
  expect(runs).toEqual([])
  expect(timers.pending).toBe(0)
})
