import type { Browser } from 'playwright-core'
import { openBareContext, type BareContext, type BarePage } from '../../support/bare-page.ts'
import { eventually, workerUrl } from '../../support/chromium.ts'
import type { Door } from '../../support/door.ts'
import type { LanPlace } from './lan.ts'
import { PLEDGE_MB, throughDoor, type RealDevice } from './real-device.ts'

/** How many times slower a slow page computes. */
const THROTTLE = 20

const BEGIN_MS = 15_000
/** A page that was killed again and again waits for its owner's word, also when it was closed in peace since. */
const BEGUN = `(() => {
  const buttons = [...document.querySelectorAll('button')]
  buttons.find(({ textContent }) => textContent.trim() === 'Try anew')?.click()
  return document.querySelector('[data-testid=phase]') !== null
})()`

export function createTabDevice(options: {
  readonly name: string
  readonly joinUrl: string
  readonly door: Door
  readonly place: LanPlace | null
  readonly browser: Browser
}): RealDevice {
  const { name, door, place } = options
  const url = workerUrl({
    joinUrl: throughDoor(options.joinUrl, door),
    name,
    provider: 'wasm',
    pledgeMb: PLEDGE_MB,
  })
  let context: BareContext | null = null
  let page: BarePage | null = null
  let isCrashed = false

  const device: RealDevice = {
    kind: 'tab',
    name,
    door,
    place,
    async open() {
      if (page !== null && !isCrashed) return
      context ??= await openBareContext(options.browser)
      await page?.close()
      const opened = await context.open(url)
      page = opened
      isCrashed = false
      await eventually('the page to begin', BEGIN_MS, () => opened.evaluate(BEGUN))
    },
    async kill() {
      if (page === null || isCrashed) return
      isCrashed = true
      await page.crash()
    },
    async leave() {
      await page?.close()
      page = null
    },
    async reload() {
      if (!isCrashed) await page?.send('Page.reload')
    },
    async setFrozen(isFrozen) {
      if (!isCrashed) await page?.setFrozen(isFrozen)
    },
    async setSlow(isSlow) {
      const rate = isSlow ? THROTTLE : 1
      if (!isCrashed) await page?.send('Emulation.setCPUThrottlingRate', { rate })
    },
    async restore() {
      door.unblock()
      await device.setFrozen(false)
      await device.setSlow(false)
      await device.open()
    },
    async memoryBytes() {
      if (page === null) throw new Error(`${name} is closed`)
      // What only waits for its finalizer goes with the second one.
      await page.send('HeapProfiler.collectGarbage')
      await page.send('HeapProfiler.collectGarbage')
      return (await page.send('Runtime.getHeapUsage')).usedSize
    },
    async story() {
      if (page === null || isCrashed) return 'closed'
      return String(await page.evaluate('document.body.innerText'))
    },
    async close() {
      await context?.close()
      await door.close()
    },
  }
  return device
}
