import type { PeerId, PieceHash } from '../../sdk/core/ids.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { Lane } from '../../sdk/net/channel.ts'
import { createConnector } from '../../sdk/net/connector.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import type { StageStep } from '../../sdk/runtime/stage-runner.ts'
import { createSessions } from '../../sdk/worker/sessions.ts'
import { createWorker } from '../../sdk/worker/worker.ts'
import type { Worker } from '../../sdk/worker/worker-snapshot.ts'
import { createGate, type Gate } from './gate.ts'
import type { Lie } from './lies.ts'
import type { SimHost } from './sim-host.ts'
import type { SimLinks } from './sim-links.ts'
import { createSimStore, simFetch, type PieceBytes } from './sim-pieces.ts'
import { createSimRunner, type SimRunner } from './sim-runner.ts'
import { createSimSignaling, type SimSignaling } from './sim-signaling.ts'

export type DeviceOptions = {
  readonly pledgeBytes: number
  /** What a step of so many rows takes, ms. */
  stepMs(rows: number): number
  /** What the device keeps to send it again; the product's own limit when absent. */
  readonly replayBytes?: number
}

/** One life of a page: from opening it to closing it. */
export type PageLife = {
  readonly gate: Gate
  readonly signaling: SimSignaling
  readonly runner: SimRunner
  readonly worker: Worker
}

/** A person's device in the simulator, and what can happen to it. */
export type SimDevice = {
  readonly peer: PeerId
  /** The page that is open, or was last. */
  readonly life: PageLife
  readonly isAlive: boolean
  /** Pieces that it has stored. */
  readonly stored: number
  /** The tab is closed and has no time for a word: its socket breaks, its links fall silent. */
  kill(): void
  /** The device loses power or its network: nobody is told anything. */
  vanish(): void
  /** Says goodbye. */
  leave(): void
  freeze(): void
  thaw(): void
  /** Steps take so many times as long from now on. */
  slow(factor: number): void
  /** From now on it lies so; null = no more. */
  lie(lie: Lie | null): void
  /** Says something to the host, whatever its worker does. */
  say(message: ClientMessage): void
  dropSocket(): void
  /** Its line to the host is dead, which both notice by their pings; the other devices reach it. */
  loseHost(): void
  /** The page is opened again, by the same identity and with the pieces that are stored. */
  reopen(): void
}

export type SimDeviceDeps = {
  readonly clock: Timers
  readonly host: SimHost
  readonly links: SimLinks
  readonly manifest: Manifest
  readonly pieces: PieceBytes
  /** It fetches from other devices, and gives. */
  readonly sharesPieces: boolean
  /** One way to the host, ms. */
  delayMs(): number
  readonly random: () => number
  /** Called before each step of this device. */
  beforeStep(device: SimDevice, step: StageStep): void
  /** Called after a piece was stored. */
  onStored(device: SimDevice, hash: PieceHash, bytes: Uint8Array): void
}

/** The host gives a socket up after this long without an answer: its ping and the limit for the answer. */
const SOCKET_DEAD_MS = { least: 3_000, most: 5_000 } as const
const FETCH_BYTES_PER_MS = 1_000
const LOAD_MS = 5

export function createSimDevice(
  deps: SimDeviceDeps,
  name: string,
  options: DeviceOptions,
): SimDevice {
  // A name that the simulator chooses is an id without a parser.
  const peer = name as PeerId
  const { clock, random } = deps
  let stored = 0
  const store = createSimStore((hash, bytes) => {
    stored += 1
    deps.onStored(device, hash, bytes)
  })
  let factor = 1
  let lies: Lie | null = null
  let life = open()

  function open(): PageLife {
    const gate = createGate(clock)
    const { host, delayMs, links, manifest } = deps
    const { replayBytes } = options
    const replay = replayBytes === undefined ? {} : { replayBytes }
    const honest = createSimSignaling({
      gate,
      host,
      entry: { peer, name, role: 'worker', sharesPieces: deps.sharesPieces },
      delayMs,
      random,
    })
    const signaling: SimSignaling = {
      ...honest,
      send: (message) => (lies?.message?.(message) ?? [message]).every(honest.send),
    }
    const runner = createSimRunner({
      timers: gate,
      stepMs: (rows) => options.stepMs(rows) * factor,
      loadMs: LOAD_MS,
      beforeStep: (step) => deps.beforeStep(device, step),
    })
    const worker = createWorker(
      {
        signaling,
        connector: createConnector({
          signaling,
          makePeerLink: links.maker(peer, { gate, tamper }),
          timers: gate,
        }),
        runner,
        makeSessions: (parts) => createSessions({ ...parts, ...replay }),
        store,
        fetchPieces: simFetch({
          store,
          timers: gate,
          pieces: deps.pieces,
          random,
          bytesPerMs: FETCH_BYTES_PER_MS,
        }),
        loadManifest: () => Promise.resolve(manifest),
        now: gate.now,
        later: (ms, task) => gate.after(ms, task),
      },
      { pledgeBytes: options.pledgeBytes, paused: false },
    )
    void worker.start()
    return { gate, signaling, runner, worker }
  }

  /** False: it keeps the message to itself. */
  function tamper(lane: Lane, message: Uint8Array): boolean {
    return lane !== 'bulk' || lies?.frame?.(message) !== 'kept'
  }

  const silence = (): number =>
    SOCKET_DEAD_MS.least + random() * (SOCKET_DEAD_MS.most - SOCKET_DEAD_MS.least)

  const device: SimDevice = {
    peer,
    get life() {
      return life
    },
    get stored() {
      return stored
    },
    get isAlive() {
      return !life.gate.isDead && life.worker.snapshot().phase !== 'left'
    },
    kill() {
      life.signaling.abandon(deps.delayMs())
      life.gate.kill()
    },
    vanish() {
      life.signaling.abandon(silence())
      life.gate.kill()
    },
    leave: () => void life.worker.leave(),
    freeze() {
      const frozen = life
      if (frozen.gate.isFrozen) return
      frozen.gate.freeze()
      clock.after(silence(), () => {
        if (frozen.gate.isFrozen && !frozen.gate.isDead) frozen.signaling.drop('ping timeout')
      })
    },
    thaw: () => life.gate.thaw(),
    slow(times) {
      factor = times
    },
    lie(lie) {
      lies = lie
    },
    say: (message) => void life.signaling.send(message),
    dropSocket: () => life.signaling.drop('transport close'),
    loseHost() {
      const { signaling } = life
      signaling.abandon(silence())
      clock.after(silence(), () => signaling.drop('ping timeout'))
    },
    reopen() {
      if (device.isAlive) device.kill()
      life = open()
    },
  }
  return device
}
