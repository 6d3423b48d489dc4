import type { Browser, CDPSession } from 'playwright-core'
import { createDeferred, type Deferred } from '../../sdk/worker/deferred.ts'

/**
 * A page that the driver has no hand in. The driver gives its own pages the focus for good, and Chromium neither
 * hides nor freezes a page with focus; this one it freezes, timers, channels and all.
 */
export type BarePage = {
  readonly send: CDPSession['send']
  /** The value must be JSON. @throws Error what the page threw */
  evaluate(expression: string): Promise<unknown>
  /** As when another tab is in front of it. */
  setHidden(isHidden: boolean): Promise<void>
  /** Hidden first; shown again afterwards. */
  setFrozen(isFrozen: boolean): Promise<void>
  /** Ends its process. */
  crash(): Promise<void>
  close(): Promise<void>
}

/** A device of its own: pages of one context share a storage. */
export type BareContext = {
  open(url: string): Promise<BarePage>
  close(): Promise<void>
}

export async function openBareContext(browser: Browser): Promise<BareContext> {
  const cdp = await browser.newBrowserCDPSession()
  const { browserContextId } = await cdp.send('Target.createBrowserContext')
  return {
    open: (url) => openBarePage(cdp, { url, browserContextId }),
    async close() {
      await cdp.send('Target.disposeBrowserContext', { browserContextId })
      await cdp.detach()
    },
  }
}

/** A page that computes, or is throttled, answers late. */
const COMMAND_MS = 30_000

async function openBarePage(
  cdp: CDPSession,
  { url, browserContextId }: { readonly url: string; readonly browserContextId: string },
): Promise<BarePage> {
  const { targetId } = await cdp.send('Target.createTarget', {
    url: 'about:blank',
    browserContextId,
  })
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId })
  const waiting = new Map<number, Deferred<unknown>>()
  const crashed = createDeferred<null>()
  let sent = 0

  cdp.on('Target.receivedMessageFromTarget', (event) => {
    if (event.sessionId !== sessionId) return
    // Cast: the devtools protocol's answer to a command, or an event, which has no id.
    const answer = JSON.parse(event.message) as Partial<Answer>
    if (answer.method === 'Inspector.targetCrashed') crashed.resolve(null)
    const asked = waiting.get(answer.id ?? 0)
    if (answer.error === undefined) asked?.resolve(answer.result)
    else asked?.reject(new Error(answer.error.message))
  })
  cdp.on('Target.detachedFromTarget', (event) => {
    if (event.sessionId !== sessionId) return
    for (const asked of waiting.values()) asked.reject(new Error('the page is gone'))
    crashed.resolve(null)
  })

  async function command(method: string, params?: object): Promise<unknown> {
    const id = (sent += 1)
    const asked = createDeferred<unknown>()
    const late = (): void => asked.reject(new Error(`${method} was not answered`))
    const limit = setTimeout(late, COMMAND_MS).unref()
    waiting.set(id, asked)
    try {
      const message = JSON.stringify({ id, method, params })
      await cdp.send('Target.sendMessageToTarget', { sessionId, message })
      return await asked.promise
    } finally {
      clearTimeout(limit)
      waiting.delete(id)
    }
  }

  const page: BarePage = {
    // Cast: the protocol's commands and what it says that they return.
    send: command as CDPSession['send'],
    async evaluate(expression) {
      const { result, exceptionDetails } = await page.send('Runtime.evaluate', {
        expression,
        awaitPromise: true,
        returnByValue: true,
      })
      if (exceptionDetails === undefined) return result.value as unknown
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    },
    async setHidden(isHidden) {
      // Chromium shows a page with focus; once it had it and lost it, the page is hidden.
      if (isHidden) await page.send('Emulation.setFocusEmulationEnabled', { enabled: true })
      await page.send('Emulation.setFocusEmulationEnabled', { enabled: !isHidden })
    },
    async setFrozen(isFrozen) {
      if (isFrozen) await page.setHidden(true)
      await page.send('Page.setWebLifecycleState', { state: isFrozen ? 'frozen' : 'active' })
      if (!isFrozen) await page.setHidden(false)
    },
    async crash() {
      // Never answered: the page that would is gone.
      void page.send('Page.crash').catch(() => undefined)
      await crashed.promise
    },
    async close() {
      await cdp.send('Target.closeTarget', { targetId })
    },
  }
  await page.send('Inspector.enable')
  await page.send('Security.setIgnoreCertificateErrors', { ignore: true })
  await page.send('Page.navigate', { url })
  return page
}

type Answer = { id: number; method: string; result: unknown; error: { message: string } }
