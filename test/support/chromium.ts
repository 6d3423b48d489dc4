import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { BROWSER_FLAGS, findBrowser } from '../../tools/bootstrap/browser.mjs'

export { eventually } from './eventually.ts'

/** The machine's Chromium. @throws Error where there is none */
export function chromiumPath(): string {
  const path = findBrowser()
  if (path !== null) return path
  throw new Error('no Chromium on this machine: install one or set CROWDINFER_BROWSER')
}

/** Starts the machine's Chromium, headless. `extraFlags` e.g. to forbid WebRTC. */
export async function launchChromium(
  extraFlags: readonly string[] = [],
  executablePath = chromiumPath(),
): Promise<Browser> {
  return await chromium.launch({
    executablePath,
    headless: true,
    args: [...BROWSER_FLAGS, ...extraFlags],
  })
}

export type TabOptions = {
  /** The join URL, with the pool's secret in its fragment. */
  joinUrl: string
  name: string
  provider?: 'auto' | 'wasm' | 'webgpu'
  pledgeMb?: number
}

/** What a tab really asked the host for, as the browser saw it. */
export type PieceTraffic = { requests: number; bytes: number }

/** Counts a page's requests for pieces, over reloads too. */
function countPieces(page: Page): PieceTraffic {
  const traffic: PieceTraffic = { requests: 0, bytes: 0 }
  page.on('request', (request) => {
    if (request.url().includes('/pieces/')) traffic.requests += 1
  })
  page.on('response', (response) => {
    if (!response.url().includes('/pieces/') || !response.ok()) return
    traffic.bytes += Number(response.headers()['content-length'] ?? Number.NaN)
  })
  return traffic
}

/** A device of its own: a browser context has its own storage. */
export async function openWorkerTab(
  browser: Browser,
  options: TabOptions,
): Promise<{ context: BrowserContext; page: Page; pieces: PieceTraffic }> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  const pieces = countPieces(page)
  await page.goto(workerUrl(options))
  return { context, page, pieces }
}

/** The join URL of a tab that needs no click. */
export function workerUrl(options: TabOptions): string {
  const extra = new URLSearchParams({
    name: options.name,
    auto: '1',
    pledge: String(options.pledgeMb ?? 64),
  })
  if (options.provider !== undefined && options.provider !== 'auto')
    extra.set('provider', options.provider)
  return `${options.joinUrl}&${extra.toString()}`
}
