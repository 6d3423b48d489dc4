import { afterEach, expect, test } from 'vitest'
import { openBareContext } from '../support/bare-page.ts'
import { eventually, workerUrl } from '../support/chromium.ts'
import { startRing, type Ring } from '../support/ring.ts'

/** Less than the time after which silence is noticed, counted from the last beat. */
const AT_ONCE_MS = 1_500

let ring: Ring | null = null

afterEach(async () => {
  await ring?.close()
  ring = null
})

test('a tab that is frozen has no part in the ring at once, and serves again when it thaws', async () => {
  ring = await startRing({ model: 'crowdtalk-0.3m', provider: 'wasm', tabs: 1, stages: 2 })
  const { swarm, complete, started } = ring
  const device = await openBareContext(await ring.browser())
  const joinUrl = started.urls.join
  const page = await device.open(workerUrl({ joinUrl, name: 'tab-2', provider: 'wasm' }))
  await complete()
  await page.setFrozen(true)
  await eventually('a ring without it', AT_ONCE_MS, () => (swarm().complete ? null : true))
  await page.setFrozen(false)
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
