import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import { workerUrl } from '../../support/chromium.ts'
import type { Door } from '../../support/door.ts'
import { PLEDGE_MB, throughDoor, type RealDevice } from './real-device.ts'

/** How many times slower a slow page computes. */
const THROTTLE = 20
/** A crash that is asked for is never answered. */
const CRASH_MS = 5_000

const STORY_MS = 5_000

export function createTabDevice(options: {
  readonly name: string
  readonly joinUrl: string
  readonly door: Door
  readonly browser: Browser
}): RealDevice {
  const { name, door } = options
  const url = workerUrl({
    joinUrl: throughDoor(options.joinUrl, door),
    name,
    provider: 'wasm',
    pledgeMb: PLEDGE_MB,
  })
  let context: BrowserContext | null = null
  let tab: { readonly page: Page; readonly cdp: CDPSession } | null = null
  let isCrashed = false

  const device: RealDevice = {
    kind: 'tab',
    name,
    door,
    async open() {
      context ??= await options.browser.newContext({ ignoreHTTPSErrors: true })
      if (tab !== null && !isCrashed) return
      await tab?.page.close()
      const page = await context.newPage()
      isCrashed = false
      tab = { page, cdp: await context.newCDPSession(page) }
      await page.goto(url)
    },
    async kill() {
      if (tab === null || isCrashed) return
      const { page, cdp } = tab
      const crashed = page.waitForEvent('crash', { timeout: CRASH_MS })
      // Never answered: the page that would is gone.
      void cdp.send('Page.crash').catch(() => undefined)
      isCrashed = true
      await crashed
    },
    async leave() {
      await tab?.page.close()
      tab = null
    },
    async reload() {
      await tab?.page.reload()
    },
    async setFrozen(isFrozen) {
      const state = isFrozen ? 'frozen' : 'active'
      if (!isCrashed) await tab?.cdp.send('Page.setWebLifecycleState', { state })
    },
    async setSlow(isSlow) {
      const rate = isSlow ? THROTTLE : 1
      if (!isCrashed) await tab?.cdp.send('Emulation.setCPUThrottlingRate', { rate })
    },
    async restore() {
      door.unblock()
      await device.setFrozen(false)
      await device.setSlow(false)
      await device.open()
    },
    async memoryBytes() {
      if (tab === null) throw new Error(`${name} is closed`)
      await tab.cdp.send('HeapProfiler.collectGarbage')
      return (await tab.cdp.send('Runtime.getHeapUsage')).usedSize
    },
    async story() {
      if (tab === null || isCrashed) return 'closed'
      return await tab.page.locator('body').innerText({ timeout: STORY_MS })
    },
    async close() {
      await context?.close()
      await door.close()
    },
  }
  return device
}
