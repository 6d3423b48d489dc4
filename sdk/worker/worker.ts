import { CrowdError, toCrowdError } from '../core/errors.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import { blockPieces, type Manifest } from '../core/model/manifest.ts'
import type { Connector } from '../net/channel.ts'
import type { Signaling, SignalingState } from '../net/signaling.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessage } from '../protocol/server-to-client.ts'
import type { RunnerReport, StageRunner } from '../runtime/stage-runner.ts'
import type { ShardStore, StoreUsage } from '../storage/shard-store.ts'
import { createLinks } from './links.ts'
import { createSessions } from './sessions.ts'
import { createStageHolder, type FetchPieces } from './stage-holder.ts'
import { createStepMeter } from './step-meter.ts'
import type { Worker, WorkerSnapshot } from './worker-snapshot.ts'

export type WorkerDeps = {
  signaling: Signaling
  connector: Connector
  runner: StageRunner
  store: ShardStore
  fetchPieces: FetchPieces
  /** The manifest at a path of the host, parsed. @throws CrowdError piece-unavailable, model-invalid */
  loadManifest(path: string): Promise<Manifest>
  now(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

export type WorkerOptions = { readonly pledgeBytes: number; readonly paused: boolean }

/** How often measurements go to the host, and links are looked at, while something changes. */
const STATS_MS = 1_000

/** The role that lends compute: joins, holds what it is told to, serves steps, leaves politely. */
export function createWorker(deps: WorkerDeps, options: WorkerOptions): Worker {
  const handlers = new Set<(snapshot: WorkerSnapshot) => void>()
  const meter = createStepMeter()
  const stopTimers: (() => void)[] = []
  let pledgeBytes = options.pledgeBytes
  let paused = options.paused
  let hidden = false
  let gone: 'left' | 'failed' | null = null
  let runner: RunnerReport | null = null
  let peer: PeerId | null = null
  let manifest: Manifest | null = null
  let manifestPath = ''
  let signalingKind: SignalingState['kind'] = 'connecting'
  let error: CrowdError | null = null
  let storage: StoreUsage | null = null
  let toldSteps = 0
  let started = false

  const tell = (message: ClientMessage): void => {
    deps.signaling.send(message)
  }
  const holder = createStageHolder({
    runner: deps.runner,
    store: deps.store,
    fetchPieces: deps.fetchPieces,
    report(message) {
      tell(message)
      if (message.state === 'ready' || message.state === 'failed') void refreshStorage()
    },
    onChange: changed,
  })
  const links = createLinks({
    connector: deps.connector,
    send: tell,
    onFrame,
    onLost: (pair, reason) => sessions.onLost(pair, reason),
    onChange: changed,
    later: deps.later,
  })
  const sessions = createSessions({
    runner: deps.runner,
    channel: (pair) => links.channel(pair),
    tell,
    onStep: (tokens, computeMs) => meter.add(tokens, computeMs),
    onChange: changed,
    now: deps.now,
  })

  function phase(): WorkerSnapshot['phase'] {
    if (gone !== null) return gone
    if (!started) return 'idle'
    if (runner === null) return 'testing'
    if (signalingKind !== 'open' || manifest === null) return 'connecting'
    if (paused) return 'paused'
    const held = holder.held()
    if (held === null || held.range === null) return 'waiting'
    return held.state === 'ready' ? 'serving' : held.state
  }

  function snapshot(): WorkerSnapshot {
    const held = holder.held()
    return {
      phase: phase(),
      peer,
      model: manifest?.id ?? null,
      layerCount: manifest?.layerCount ?? null,
      range: held?.range ?? null,
      reason: held?.reason ?? '',
      runner,
      pledgeBytes,
      doneBytes: held?.doneBytes ?? 0,
      totalBytes: held?.totalBytes ?? 0,
      fetchedBytes: held?.fetchedBytes ?? 0,
      storage,
      links: links.list(),
      laps: meter.steps,
      tokens: meter.tokens,
      stepMs: meter.stepMs,
      sessions: sessions.count(),
      error: error ?? held?.error ?? null,
    }
  }

  function changed(): void {
    const now = snapshot()
    for (const handler of handlers) handler(now)
  }

  function fail(thrown: unknown): void {
    if (gone !== null) return
    error = toCrowdError(thrown)
    gone = 'failed'
    void shutDown('failed')
  }

  /** A frame that is wrong closes its link; the host re-opens it and the sender is noticed. */
  function onFrame(pair: PairId, from: PeerId, bytes: Uint8Array): void {
    try {
      sessions.onFrame(from, bytes)
    } catch (thrown) {
      links.fault(pair, toCrowdError(thrown, 'bad-frame').message)
    }
  }

  async function refreshStorage(): Promise<void> {
    try {
      storage = await deps.store.usage()
      changed()
    } catch {
      // The page then shows no numbers for storage; pieces themselves report their own failures.
      storage = null
    }
  }

  async function sendPledge(): Promise<void> {
    if (runner === null || manifest === null) return
    const ours = new Set(manifest.blocks.flatMap(blockPieces).map((piece) => piece.sha256))
    const stored = await deps.store.list().catch(() => [])
    tell({
      kind: 'pledge',
      memoryBytes: paused ? 0 : pledgeBytes,
      provider: runner.provider,
      threads: runner.threads,
      cached: stored.filter((hash) => ours.has(hash)),
      hidden,
    })
  }

  /** After every (re)connect: what this device is and holds, in full. */
  async function announce(
    welcome: Extract<SignalingState, { kind: 'open' }>['welcome'],
  ): Promise<void> {
    try {
      peer = welcome.peer
      if (manifest === null || manifestPath !== welcome.manifestPath) {
        manifest = await deps.loadManifest(welcome.manifestPath)
        manifestPath = welcome.manifestPath
      }
      await sendPledge()
      holder.announce()
      links.announce()
      changed()
    } catch (thrown) {
      fail(thrown)
    }
  }

  function onState(state: SignalingState): void {
    signalingKind = state.kind
    if (state.kind === 'open') void announce(state.welcome)
    if (state.kind === 'refused') fail(state.error)
    changed()
  }

  async function onAssign(message: Extract<ServerMessage, { kind: 'assign' }>): Promise<void> {
    if (manifest?.revision !== message.revision) {
      // Another model, or another build of it: its manifest lies where the welcome said.
      manifest = await deps.loadManifest(manifestPath)
    }
    sessions.failAll(new CrowdError('stage-lost', 'the device was given other layers'))
    await holder.assign(message, manifest)
  }

  function onMessage(message: ServerMessage): void {
    switch (message.kind) {
      case 'assign':
        onAssign(message).catch(fail)
        return
      case 'pair-open':
        links.open(message)
        return
      case 'pair-close':
        links.close(message.pair, message.reason)
        return
      case 'signal':
        deps.connector.accept(message.pair, message.attempt, message.data)
        return
      case 'session-open':
        if (manifest !== null) void sessions.open(message, manifest)
        return
      case 'session-start':
        sessions.start(message)
        return
      case 'session-close':
        sessions.close(message).catch(fail)
        return
      case 'welcome':
      case 'refused':
      case 'ask-accepted':
      case 'ask-token':
      case 'ask-end':
      case 'swarm':
        return
    }
  }

  /** Once a second: measurements to the host when there are new ones, and round trips to the page. */
  function tick(): void {
    const held = holder.held()
    if (held !== null && meter.steps !== toldSteps) {
      toldSteps = meter.steps
      tell({
        kind: 'stage-stats',
        assignment: held.assignment,
        steps: meter.steps,
        tokens: meter.tokens,
        stepMs: meter.stepMs ?? 0,
      })
      links.announce()
    }
    changed()
    stopTimers[0] = deps.later(STATS_MS, tick)
  }

  async function shutDown(reason: string): Promise<void> {
    for (const stop of stopTimers) stop()
    holder.stop()
    links.closeAll(reason)
    tell({ kind: 'leave' })
    deps.connector.close()
    deps.signaling.close()
    changed()
    await deps.runner.close()
  }

  return {
    onChange(handler) {
      handlers.add(handler)
      handler(snapshot())
      return () => handlers.delete(handler)
    },
    snapshot,
    async start() {
      if (started) return
      started = true
      changed()
      try {
        runner = await deps.runner.start()
        changed()
        await refreshStorage()
        deps.signaling.onMessage(onMessage)
        deps.signaling.onState(onState)
        deps.signaling.connect()
        tick()
      } catch (thrown) {
        fail(thrown)
      }
    },
    setPledge(memoryBytes) {
      pledgeBytes = memoryBytes
      void sendPledge()
      changed()
    },
    async pause() {
      paused = true
      await sendPledge()
      changed()
    },
    async resume() {
      paused = false
      await sendPledge()
      changed()
    },
    setHidden(value) {
      hidden = value
      void sendPledge()
    },
    async leave() {
      if (gone !== null) return
      gone = 'left'
      await shutDown('the device left')
    },
  }
}
