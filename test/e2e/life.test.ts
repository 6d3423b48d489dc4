import { afterEach, expect, test } from 'vitest'
import { eventually } from '../support/chromium.ts'
import { startRing, type Ring } from '../support/ring.ts'

/** Less than the time after which silence is noticed, counted from the last beat. */
const AT_ONCE_MS = 1_500

let ring: Ring | null = null

afterEach(async () => {
  await ring?.close()
  ring = null
})

test('a tab that will be frozen has no part in the ring at once, and serves again when it thaws', async () => {
  ring = await startRing({ model: 'crowdtalk-0.3m', provider: 'wasm', tabs: 2 })
  const { tabs, swarm, complete } = ring
  await complete()
  const [tab] = tabs
  if (tab === undefined) throw new Error('no tab')
  // The driver keeps its pages visible, and a visible page is never frozen: the page only hears that it will be.
  await tab.page.evaluate(() => document.dispatchEvent(new Event('freeze')))
  await eventually('a ring without it', AT_ONCE_MS, () => (swarm().complete ? null : true))
  await tab.page.evaluate(() => document.dispatchEvent(new Event('resume')))
  await complete(20_000)
})

test('a reload leaves no ghost', async () => {
  ring = await startRing({ model: 'crowdtalk-0.3m', provider: 'wasm', tabs: 2 })
  const { tabs, swarm, complete } = ring
  await complete()
  const workers = () => swarm().peers.filter(({ role }) => role === 'worker')
  const ids = workers().map(({ peer }) => peer)
  let most = 0
  const watch = setInterval(() => (most = Math.max(most, workers().length)), 20)
  try {
    for (const { page } of tabs) await page.reload()
    await eventually('the ring after the reloads', 60_000, () => (swarm().complete ? true : null))
  } finally {
    clearInterval(watch)
  }
  expect(most).toBe(2)
  expect(
    workers()
      .map(({ peer }) => peer)
      .sort(),
  ).toEqual(ids.sort())
})
