import { expect, test } from 'vitest'
import { createTabLock } from './tab-lock.ts'

test('only the others see a lock that a tab holds, and only while it holds it', async () => {
  const mine = createTabLock(navigator.locks)
  const other = createTabLock(navigator.locks)
  expect(await other.heldElsewhere()).toBe(false)
  mine.take()
  await expect.poll(() => other.heldElsewhere()).toBe(true)
  expect(await mine.heldElsewhere()).toBe(false)
  mine.release()
  await expect.poll(() => other.heldElsewhere()).toBe(false)
})

test('without locks every tab is the first', async () => {
  const lock = createTabLock(undefined)
  lock.take()
  expect(await lock.heldElsewhere()).toBe(false)
  lock.release()
})
