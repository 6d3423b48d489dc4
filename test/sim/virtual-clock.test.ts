import { expect, test } from 'vitest'
import { createVirtualClock } from './virtual-clock.ts'

test('events run in the order of their time, then of their making', async () => {
  const clock = createVirtualClock(0)
  const seen: string[] = []
  clock.after(5, () => seen.push(`c ${clock.now()}`))
  clock.after(2, () => {
    seen.push(`a ${clock.now()}`)
    clock.after(3, () => seen.push(`d ${clock.now()}`))
    clock.after(0, () => seen.push(`b ${clock.now()}`))
  })
  await clock.run(100)
  expect(seen).toEqual(['a 2', 'b 2', 'c 5', 'd 5'])
  expect(clock.now()).toBe(100)
})

test('every promise that can settle does, however long its chain, before the next event', async () => {
  const clock = createVirtualClock(0)
  let settled = 0
  clock.after(1, () => {
    void (async () => {
      for (let link = 0; link < 5_000; link += 1) await Promise.resolve()
      settled = clock.now()
    })()
  })
  let seen = -1
  clock.after(1, () => {
    seen = settled
  })
  await clock.run(10)
  expect(seen).toBe(1)
})

test('a cancelled event does not run and does not count', async () => {
  const clock = createVirtualClock(0)
  const cancel = clock.after(1, () => expect.unreachable())
  clock.after(2, () => undefined)
  expect(clock.pending).toBe(2)
  cancel()
  cancel()
  expect(clock.pending).toBe(1)
  await clock.run(10)
  expect(clock.pending).toBe(0)
})

test('it stops at the limit, and where it is told to', async () => {
  const clock = createVirtualClock(0)
  let count = 0
  const again = (): void => {
    count += 1
    clock.after(10, again)
  }
  again()
  expect(await clock.run(25)).toBe(false)
  expect(count).toBe(3)
  expect(await clock.run(1_000, () => count === 5)).toBe(true)
  expect(clock.now()).toBe(40)
})

test('a thousand events in any order come out sorted', async () => {
  const clock = createVirtualClock(0)
  const times: number[] = []
  for (let index = 0; index < 1_000; index += 1)
    clock.after((index * 7_919) % 997, () => times.push(clock.now()))
  await clock.run(1_000)
  expect(times).toHaveLength(1_000)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
})
