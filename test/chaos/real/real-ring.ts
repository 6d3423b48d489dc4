import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import type { PeerId, SessionId } from '../../../sdk/core/ids.ts'
import type { SwarmEvent } from '../../../sdk/core/swarm/events.ts'
import type { SwarmState } from '../../../sdk/core/swarm/state.ts'
import { pairBetween } from '../../../sdk/core/swarm/views.ts'
import { openModel, type OpenedModel } from '../../../sdk/index.node.ts'
import { parseConfig } from '../../../signaling/config.ts'
import { createHost } from '../../../signaling/server.ts'
import { hostDeps } from '../../../signaling/start-command.ts'
import { openAsker, type Asker } from '../../support/asker.ts'
import { canDoWithout } from '../../support/can-do-without.ts'
import { chromiumPath, eventually, launchChromium } from '../../support/chromium.ts'
import { openDoor } from '../../support/door.ts'
import { openLan, type Lan, type LanPlace } from './lan.ts'
import type { RealDevice } from './real-device.ts'
import { createTabDevice } from './tab-device.ts'
import { createWorkerDevice } from './worker-device.ts'

export type RealRingOptions = {
  readonly workers: number
  readonly tabs: number
  readonly stages: number
  /** Each device has a network of its own, and each tab a browser. */
  readonly isLan?: boolean
}

/** A real host in this process, real worker processes and real tabs, each behind a door of its own. */
export type RealRing = {
  readonly model: OpenedModel
  readonly devices: readonly RealDevice[]
  /** null: everybody is on loopback. */
  readonly lan: Lan | null
  state(): SwarmState
  peerOf(device: RealDevice): PeerId | null
  /** Whether frames go from one device to the other without the host. */
  areDirect(a: RealDevice, b: RealDevice): boolean
  openAsker(): Promise<Asker>
  /** Hears of everything that happens in the swarm, until the returned function is called. */
  onEvent(listener: (event: SwarmEvent, after: SwarmState) => void): () => void
  /** Sessions that a device spoke of in its last beat. */
  sessionsOf(device: RealDevice): readonly SessionId[]
  /** Waits until every device is ready and, where there are more than stages, none is needed. @throws Error saying what is missing */
  untilWhole(limitMs: number): Promise<void>
  close(): Promise<void>
}

const MODEL = 'crowdtalk-0.3m'

export async function openRealRing(options: RealRingOptions): Promise<RealRing> {
  const dataDir = await mkdtemp(join(tmpdir(), 'crowdinfer-chaos-'))
  const model = await openModel(MODEL, dataDir)
  const listeners = new Set<(event: SwarmEvent, after: SwarmState) => void>()
  const sessions = new Map<PeerId, readonly SessionId[]>()
  const flags = { port: '0', host: '127.0.0.1', data: dataDir, model: MODEL }
  const host = createHost(parseConfig({ ...flags, stages: String(options.stages) }), {
    ...hostDeps(() => undefined),
    observe(event, after) {
      if (event.kind === 'beat')
        sessions.set(
          event.peer,
          event.sessions.map(({ session }) => session),
        )
      for (const listener of listeners) listener(event, after)
    },
  })
  const started = await host.start()
  const devices: RealDevice[] = []
  const browsers: Browser[] = []
  let lan: Lan | null = null
  const state = (): SwarmState => host.service().state()
  const peerOf = ({ name }: RealDevice): PeerId | null =>
    [...state().peers.values()].find((peer) => peer.name === name)?.peer ?? null

  function missing(): string {
    const needsReplicas = devices.length > options.stages
    const lacking = devices.filter((device) => {
      const peer = state().peers.get(peerOf(device) ?? ('' as PeerId))
      if (peer?.droppedAt !== null || peer.silence !== null) return true
      if (peer.assignment?.state !== 'ready' || peer.assignment.range === null) return true
      return needsReplicas && !canDoWithout(state(), peer.peer)
    })
    if (lacking.length > 0) return lacking.map(({ name }) => name).join(', ')
    return host.service().snapshot().complete ? '' : host.service().snapshot().advice
  }

  const ring: RealRing = {
    model,
    devices,
    get lan() {
      return lan
    },
    state,
    peerOf,
    areDirect(a, b) {
      const [from, to] = [peerOf(a), peerOf(b)]
      if (from === null || to === null) return false
      const pair = pairBetween(state(), from, to)
      return pair?.state === 'open' && pair.path === 'direct'
    },
    openAsker: () =>
      openAsker({
        url: new URL(started.urls.join).origin,
        secret: started.secret,
        manifest: model.manifest,
        tokenizer: model.tokenizer,
      }),
    onEvent(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    sessionsOf: (device) => sessions.get(peerOf(device) ?? ('' as PeerId)) ?? [],
    async untilWhole(limitMs) {
      let why = ''
      await eventually('', limitMs, () => ((why = missing()) === '' ? true : null)).catch(() => {
        throw new Error(`the ring was not whole within ${limitMs / 1_000} s: ${describe(why)}`)
      })
    },
    async close() {
      // What ended by itself, as a browser that crashed, must not keep the rest.
      await Promise.allSettled(devices.map((device) => device.close()))
      await Promise.allSettled(browsers.map((browser) => browser.close()))
      await host.close()
      lan?.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }

  function describe(why: string): string {
    const peers = [...state().peers.values()].map(({ name, droppedAt, silence, assignment }) => {
      const { range, state: stage } = assignment ?? { range: null, state: 'none' }
      const where = range === null ? 'spare' : `${range.start}-${range.end}`
      return `${name} ${where} ${stage} ${droppedAt === null ? '' : 'dropped'} ${silence ?? ''}`
    })
    return `${why} (${peers.join('; ')})`
  }

  /** One for all tabs, unless each has a network of its own. */
  async function browserFor(place: LanPlace | null): Promise<Browser> {
    const [shared] = browsers
    if (lan === null && shared !== undefined) return shared
    const path =
      lan === null || place === null ? chromiumPath() : lan.launcherFile(place, chromiumPath())
    const browser = await launchChromium([], path)
    browsers.push(browser)
    return browser
  }

  try {
    if (options.isLan === true) lan = openLan(options.workers + options.tabs)
    const common = { joinUrl: started.urls.join, dataDir: join(dataDir, 'worker-data') }
    for (let index = 0; index < options.workers + options.tabs; index += 1) {
      const door = await openDoor(started.port, lan?.hostAddress)
      const place = lan?.places[index] ?? null
      const number = String(index + 1)
      const device =
        index < options.workers
          ? createWorkerDevice({ ...common, name: `worker-${number}`, door, place })
          : createTabDevice({
              ...common,
              name: `tab-${number}`,
              door,
              place,
              browser: await browserFor(place),
            })
      devices.push(device)
      await device.open()
    }
    return ring
  } catch (error) {
    await ring.close()
    throw error
  }
}
