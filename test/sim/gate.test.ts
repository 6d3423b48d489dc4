import { expect, test } from 'vitest'
import { createGate } from './gate.ts'
import { createVirtualClock } from './virtual-clock.ts'

test('a frozen page runs nothing, and all of it late and in order once it is thawed', async () => {
  const clock = createVirtualClock(0)
  const gate = createGate(clock)
  const seen: string[] = []
  gate.freeze()
  gate.after(5, () => seen.push(`timer ${clock.now()}`))
  clock.after(8, () => gate.enter(() => seen.push(`message ${clock.now()}`)))
  await clock.run(50)
  expect(seen).toEqual([])
  gate.thaw()
  // Comes while the page still catches up: behind what waits.
  gate.enter(() => seen.push('new'))
  await clock.run(60)
  expect(seen).toEqual(['timer 50', 'message 50', 'new'])
  expect(gate.pending).toBe(0)
})

test('a dead page runs nothing, and none of its timers is left', async () => {
  const clock = createVirtualClock(0)
  const gate = createGate(clock)
  gate.after(5, () => expect.unreachable())
  gate.kill()
  gate.after(5, () => expect.unreachable())
  gate.enter(() => expect.unreachable())
  expect([gate.pending, clock.pending]).toEqual([0, 0])
  await clock.run(50)
})

test('a page that is frozen again while it catches up stops there', async () => {
  const clock = createVirtualClock(0)
  const gate = createGate(clock)
  const seen: number[] = []
  gate.freeze()
  gate.enter(() => {
    seen.push(1)
    gate.freeze()
  })
  gate.enter(() => seen.push(2))
  gate.thaw()
  await clock.run(10)
  expect(seen).toEqual([1])
  gate.thaw()
  await clock.run(20)
  expect(seen).toEqual([1, 2])
})
