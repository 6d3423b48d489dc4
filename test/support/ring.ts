import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { parseConfig } from '../../signaling/config.ts'
import { hostDeps } from '../../signaling/start-command.ts'
import { createHost, type Host, type StartedHost } from '../../signaling/server.ts'
import {
  eventually,
  launchChromium,
  openWorkerTab,
  type PieceTraffic,
  type TabOptions,
} from './chromium.ts'
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts'

export type RingOptions = {
  model?: string
  tabs: number
  /** Node processes beside them. */
  workers?: number
  /** Least number of stages; default: one per tab and worker. */
  stages?: number
  provider?: TabOptions['provider']
  pledgeMb?: number
  browserFlags?: readonly string[]
  /** Where models are cut to; a fresh folder when absent. */
  dataDir?: string
}

export type WorkerTab = {
  readonly name: string
  readonly context: BrowserContext
  readonly page: Page
  readonly pieces: PieceTraffic
}

/** A real host, real tabs in one headless Chromium, each tab a device of its own, and real worker processes. */
export type Ring = {
  readonly started: StartedHost
  readonly dataDir: string
  readonly tabs: WorkerTab[]
  readonly workers: WorkerProcess[]
  swarm(): SwarmSnapshot
  openTab(options?: Partial<TabOptions>): Promise<WorkerTab>
  /** Each with a data folder of its own. */
  startWorker(): WorkerProcess
  /** Waits until every block has a ready device and the stages are linked. */
  complete(limitMs?: number): Promise<SwarmSnapshot>
  openPage(url: string): Promise<Page>
  /** Started when it is first needed: a ring of workers needs none. */
  browser(): Promise<Browser>
  /** Another host process on the same port and data, as after a crash or an update. */
  restartHost(): Promise<void>
  close(): Promise<void>
}

const COMPLETE_MS = 90_000

export async function startRing(options: RingOptions): Promise<Ring> {
  const ownData = options.dataDir === undefined
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'crowdinfer-ring-')))
  const makeHost = (port: number): Host =>
    createHost(
      parseConfig({
        port: String(port),
        host: '127.0.0.1',
        data: dataDir,
        model: options.model ?? 'crowdtalk-2.6m',
        stages: String(options.stages ?? options.tabs + (options.workers ?? 0)),
      }),
      hostDeps(() => undefined),
    )
  let host = makeHost(0)
  const started = await host.start()
  let launching: Promise<Browser> | null = null
  const browser = (): Promise<Browser> => (launching ??= launchChromium(options.browserFlags))
  const ring: Ring = {
    started,
    dataDir,
    tabs: [],
    workers: [],
    swarm: () => host.service().snapshot(),
    async openTab(tab = {}) {
      const name = tab.name ?? `tab-${ring.tabs.length + 1}`
      const opened = await openWorkerTab(await browser(), {
        joinUrl: started.urls.join,
        name,
        ...(options.provider === undefined ? {} : { provider: options.provider }),
        ...(options.pledgeMb === undefined ? {} : { pledgeMb: options.pledgeMb }),
        ...tab,
      })
      const worker = { name, ...opened }
      ring.tabs.push(worker)
      return worker
    },
    startWorker() {
      const name = `worker-${ring.workers.length + 1}`
      const worker = startWorkerProcess({
        joinUrl: started.urls.join,
        name,
        dataDir: join(dataDir, 'worker-data', name),
        flags: ['--memory', `${options.pledgeMb ?? 64}MB`],
      })
      ring.workers.push(worker)
      return worker
    },
    complete: (limitMs = COMPLETE_MS) =>
      eventually(`a complete ring (${ring.swarm().advice})`, limitMs, () => {
        const swarm = ring.swarm()
        return swarm.complete ? swarm : null
      }),
    async openPage(url) {
      const context = await (await browser()).newContext({ ignoreHTTPSErrors: true })
      const page = await context.newPage()
      await page.goto(url)
      return page
    },
    browser,
    async restartHost() {
      await host.close()
      host = makeHost(started.port)
      await host.start()
    },
    async close() {
      await Promise.all(ring.workers.map((worker) => worker.kill()))
      await (await launching)?.close()
      await host.close()
      if (ownData) await rm(dataDir, { recursive: true, force: true })
    },
  }
  try {
    for (let index = 0; index < (options.workers ?? 0); index += 1) ring.startWorker()
    for (let index = 0; index < options.tabs; index += 1) await ring.openTab()
    return ring
  } catch (error) {
    await ring.close()
    throw error
  }
}
