import { emptySwarm, type SwarmState } from '../../sdk/core/swarm/state.ts'
import type { PieceHash } from '../../sdk/core/ids.ts'
import type { SwarmEvent } from '../../sdk/core/swarm/events.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { isComplete, isOver } from '../../sdk/core/swarm/views.ts'
import type { StageStep } from '../../sdk/runtime/stage-runner.ts'
import { createWatch } from './invariants.ts'
import { createRandoms, mixText, type Randoms } from './randoms.ts'
import { createSimAsker, type SimAsker } from './sim-asker.ts'
import { createSimDevice, type DeviceOptions, type SimDevice } from './sim-device.ts'
import { createSimHost, type SimHost } from './sim-host.ts'
import { createSimLinks, type LinkWeather, type SimLinks } from './sim-links.ts'
import { withPieces } from './sim-pieces.ts'
import { openUnsplit, type Unsplit } from './unsplit.ts'
import { createVirtualClock, type VirtualClock } from './virtual-clock.ts'

export type SimOptions = {
  readonly seed: number
  readonly manifest: Manifest
  readonly minStages: number
  /** Devices fetch from each other; from the host alone when absent. */
  readonly sharesPieces?: boolean
  readonly weather?: Partial<LinkWeather>
  /** Way between a peer and the host, ms: latency and jitter. */
  readonly hostMs?: { readonly latency: number; readonly jitter: number }
  /** Called before each step of a device; may end the device. */
  readonly beforeStep?: (device: SimDevice, step: StageStep) => void
}

/** The whole swarm in one process: the real host, workers and clients on links and a clock of our own. */
export type SimSwarm = {
  readonly clock: VirtualClock
  readonly host: SimHost
  readonly links: SimLinks
  readonly randoms: Randoms
  readonly unsplit: Unsplit
  readonly devices: readonly SimDevice[]
  readonly askers: readonly SimAsker[]
  join(options: DeviceOptions): SimDevice
  openAsker(): SimAsker
  /** Something that happens to the swarm, later; it happens before the end. */
  plan(ms: number, task: () => void): void
  /** Lets time pass until all that was planned has happened. */
  calm(): Promise<void>
  /** Hears of every event of the host once it was applied. */
  onEvent(listener: (event: SwarmEvent, after: SwarmState) => void): void
  /** Lets time pass until the ring can answer and everybody who asks is connected; false when they can't in time. */
  untilComplete(limitMs: number): Promise<boolean>
  /** Lets so much time pass, or less where `done` says so. */
  pass(ms: number, done?: () => boolean): Promise<boolean>
  /** What broke a rule so far. */
  readonly objections: readonly string[]
  /** Something broke a rule that only a scene knows. */
  object(what: string): void
  /** A number for everything that the host went through, in its order and at its times. */
  readonly fingerprint: number
  /** Sends everybody home and says what is left over of them. */
  close(): Promise<string[]>
}

const WEATHER: LinkWeather = { latencyMs: 4, jitterMs: 3, connectMs: 60, bytesPerMs: 2_000 }
/** After this nothing may be kept for an answer that is over, ms. */
const KEPT_MS = 900_000
/** After this nobody may be known who left, or lost the connection, ms. */
const GOODBYE_MS = 60_000

export async function createSimSwarm(options: SimOptions): Promise<SimSwarm> {
  const { minStages } = options
  const { manifest, pieces } = withPieces(options.manifest)
  const randoms = createRandoms(options.seed)
  const clock = createVirtualClock()
  const { latency, jitter } = options.hostMs ?? { latency: 3, jitter: 2 }
  const watch = createWatch(
    emptySwarm({ model: manifest, minStages, firstSession: 1, pairPrefix: 'w' }),
  )
  const listeners: ((event: SwarmEvent, after: SwarmState) => void)[] = []
  let fingerprint = options.seed
  let planned = 0

  const host = createSimHost({
    clock,
    model: manifest,
    minStages,
    random: randoms.stream('host'),
    observe(event, after) {
      watch.observe(event, after, clock.now())
      fingerprint = mixText(fingerprint, `${clock.now()} ${JSON.stringify(event)}`)
      for (const listener of listeners) listener(event, after)
    },
    onRestart: () => watch.reset(),
  })
  const links = createSimLinks({
    clock,
    random: randoms.stream('links'),
    weather: { ...WEATHER, ...options.weather },
  })
  const devices: SimDevice[] = []
  const askers: SimAsker[] = []
  const objections: string[] = []

  function way(name: string): { random: () => number; delayMs(): number } {
    const random = randoms.stream(name)
    return { random, delayMs: () => latency + random() * jitter }
  }

  /** A piece with the wrong bytes would be computed with. */
  function onStored({ peer }: SimDevice, hash: PieceHash, bytes: Uint8Array): void {
    const right = pieces.get(hash)
    if (right === undefined || Buffer.compare(right, bytes) !== 0)
      object(`${peer} stored a piece whose hash is not ${hash}`)
  }

  const object = (what: string): void =>
    void objections.push(`${what}, at ${clock.now().toFixed(0)} ms`)

  async function calm(): Promise<void> {
    await clock.run(Infinity, () => planned === 0)
    for (const device of devices) device.thaw()
  }

  async function close(): Promise<string[]> {
    await calm()
    const open = (): string[] => [...openRequests(host.state()), ...devices.flatMap(openSessions)]
    await clock.run(clock.now() + KEPT_MS, () => open().length === 0)
    const left = open()
    for (const asker of askers) asker.close()
    for (const device of devices) device.leave()
    const known = (): string[] => [...host.state().peers.keys(), ...host.state().pairs.keys()]
    await clock.run(clock.now() + GOODBYE_MS, () => known().length === 0)
    left.push(...known().map((name) => `the host still knows ${name}`))
    host.close()
    await clock.run(clock.now() + GOODBYE_MS)
    left.push(
      ...[...devices.map(({ peer, life }) => ({ peer, ...life })), ...askers].flatMap(openTimers),
    )
    if (clock.pending > 0) left.push(`${clock.pending} timers`)
    return left
  }

  return {
    clock,
    host,
    links,
    randoms,
    unsplit: await openUnsplit(manifest),
    devices,
    askers,
    join(deviceOptions) {
      const name = `d${devices.length}`
      const device = createSimDevice(
        {
          clock,
          host,
          links,
          manifest,
          pieces,
          sharesPieces: options.sharesPieces ?? false,
          ...way(name),
          beforeStep: options.beforeStep ?? (() => undefined),
          onStored,
        },
        name,
        deviceOptions,
      )
      devices.push(device)
      return device
    },
    openAsker() {
      const name = `a${askers.length}`
      const asker = createSimAsker({ clock, host, manifest, ...way(name) }, name)
      askers.push(asker)
      return asker
    },
    plan(ms, task) {
      planned += 1
      clock.after(ms, () => {
        planned -= 1
        task()
      })
    },
    calm,
    onEvent: (listener) => void listeners.push(listener),
    untilComplete: (limitMs) =>
      clock.run(
        clock.now() + limitMs,
        () =>
          isComplete(host.state()) &&
          askers.every(({ isConnected, isGone }) => isConnected || isGone),
      ),
    pass: (ms, done) => clock.run(clock.now() + ms, done),
    get objections() {
      return [...watch.objections, ...objections]
    },
    object,
    get fingerprint() {
      return fingerprint
    },
    close,
  }
}

function openRequests(state: SwarmState): string[] {
  return [...state.requests.values()]
    .filter((request) => !isOver(request))
    .map(({ key, phase }) => `${key} is still ${phase}`)
}

function openSessions({ peer, life, isAlive }: SimDevice): string[] {
  if (!isAlive) return []
  const sessions = life.worker.snapshot().sessions
  const caches = life.runner.caches().size
  return [
    ...(sessions > 0 ? [`${peer} still has ${sessions} sessions`] : []),
    ...(caches > 0 ? [`${peer} still has ${caches} caches`] : []),
  ]
}

function openTimers({ peer, gate }: Pick<SimAsker, 'peer' | 'gate'>): string[] {
  return gate.pending > 0 ? [`${peer} still has ${gate.pending} timers`] : []
}
