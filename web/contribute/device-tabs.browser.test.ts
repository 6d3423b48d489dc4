import { afterEach, expect, test } from 'vitest'
import { createDeviceTabs, type DeviceTabs } from './device-tabs.ts'

let open: DeviceTabs[] = []

function openTab(locks: LockManager | undefined = navigator.locks): DeviceTabs {
  const tab = createDeviceTabs(locks)
  open.push(tab)
  return tab
}

afterEach(async () => {
  for (const tab of open) tab.release()
  open = []
  const nobody = createDeviceTabs(navigator.locks)
  await expect.poll(() => nobody.others()).toEqual([])
})

test('the others see a tab while it contributes, and only then', async () => {
  const [mine, other] = [openTab(), openTab()]
  expect(await other.others()).toEqual([])
  mine.take()
  mine.take()
  await expect.poll(() => other.others()).toEqual([mine.id])
  expect(await mine.others()).toEqual([])
  mine.release()
  await expect.poll(() => other.others()).toEqual([])
})

test('tabs that contribute hear of each other’s coming and going', async () => {
  const [first, second, third] = [openTab(), openTab(), openTab()]
  let counts: number[] = []
  first.onChange(() => void first.others().then(({ length }) => counts.push(length)))
  first.take()
  await expect.poll(() => counts.at(-1)).toBe(0)
  second.take()
  await expect.poll(() => counts.at(-1)).toBe(1)
  third.take()
  await expect.poll(() => counts.at(-1)).toBe(2)
  counts = []
  second.release()
  await expect.poll(() => counts.at(-1)).toBe(1)
  third.release()
  await expect.poll(() => counts.at(-1)).toBe(0)
})

test('without locks every tab is the only one', async () => {
  const tab = createDeviceTabs(undefined)
  tab.take()
  expect(await tab.others()).toEqual([])
  tab.release()
})
