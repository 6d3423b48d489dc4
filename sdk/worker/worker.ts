import { CrowdError, toCrowdError } from '../core/errors.ts'
import { sameRange } from '../core/model/block-range.ts'
import type { Manifest } from '../core/model/manifest.ts'
import type { Channel, Connector } from '../net/channel.ts'
import type { Signaling, SignalingState } from '../net/signaling.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
import type { ShardStore } from '../storage/shard-store.ts'
import { createAnnouncer, type Announcer } from './announcer.ts'
import { dispatch } from './dispatch.ts'
import { createLinks } from './links.ts'
import { createPieceLinks, type PieceLinks } from './piece-links.ts'
import { createParking } from './parking.ts'
import { createReviver } from './reviver.ts'
import { createSessions, type FrameSink, type MakeSessions, type Sessions } from './sessions.ts'
import type { FetchPieces } from './fetch-pieces.ts'
import { createStageHolder, type StageHolder } from './stage-holder.ts'
import { createStepMeter, type StepMeter } from './step-meter.ts'
import { createWakefulness } from './wakefulness.ts'
import type { Worker } from './worker-snapshot.ts'
import { createView, freshState, snapshotOf, type WorkerState } from './worker-view.ts'

export type WorkerDeps = {
  signaling: Signaling
  connector: Connector
  runner: StageRunner
  /** Where sessions run; beside the rest when absent. */
  makeSessions?: MakeSessions
  store: ShardStore
  fetchPieces: FetchPieces
  /** The manifest at a path of the host, parsed. @throws CrowdError piece-unavailable, model-invalid */
  loadManifest(path: string): Promise<Manifest>
  now(): number
  /** A clock that goes on while the device sleeps, ms; `now` when absent. */
  wallNow?(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

export type WorkerOptions = { readonly pledgeBytes: number; readonly paused: boolean }

/** How often measurements go to the host, and links are looked at, while something changes. */
const STATS_MS = 1_000

/** The role that lends compute: joins, holds what it is told to, serves steps, leaves politely. */
export function createWorker(deps: WorkerDeps, options: WorkerOptions): Worker {
  const { changed, ...view } = createView(() =>
    snapshotOf(state, {
      held: holder.held(),
      links: links.list(),
      meter,
      sessions: sessions.count(),
    }),
  )
  const meter = createStepMeter()
  const state = freshState(options)
  let stopTicking: () => void = () => undefined

  const tell = (message: ClientMessage): void => void deps.signaling.send(message)
  const holder = createStageHolder({
    runner: deps.runner,
    store: deps.store,
    fetchPieces: (pieces, options) =>
      deps.fetchPieces(pieces, { ...options, peers: pieceLinks.peers }),
    report(message) {
      tell(message)
      if (message.state === 'ready' || message.state === 'failed') void announcer.storage()
    },
    onChange: changed,
    onMeasured: (stepMs) => meter.expect(stepMs),
    // The planner goes by what is stored where.
    onStored: () => void announcer.pledge(),
    onEmpty: () => sessions.failAll(startedAnew()),
  })
  const links = createLinks({
    connector: deps.connector,
    send: tell,
    onFrame: (from, bytes) => sessions.onFrame(from, bytes),
    onLost: (pair, reason) => sessions.onLost(pair, reason),
    onChange: changed,
    later: deps.later,
  })
  const pieceLinks = createPieceLinks({
    ...deps,
    send: tell,
    manifest: () => state.manifest,
    isComputing: () => sessions.count() > 0,
  })
  const sessions = (deps.makeSessions ?? createSessions)({
    runner: deps.runner,
    link: async (pair) => sinkOf(await links.channel(pair)),
    tell(message) {
      tell(message)
      if (message.kind === 'session-failed') reviver.stepFailed(message.error.code)
    },
    onStep: (tokens, computeMs) => meter.add(tokens, computeMs),
    onChange: changed,
    now: deps.now,
    later: deps.later,
    onBadFrame: (peer, { code, message }) => links.reject(peer, `${code}: ${message}`),
  })
  const parking = createParking(sessions, deps.later)
  const reviver = createReviver({
    runner: deps.runner,
    holder,
    onRevived(report) {
      state.runner = report
      void announcer.pledge()
    },
    now: deps.now,
    onGivenUp: fail,
  })
  deps.runner.onLost?.((error) => {
    // While it is tested, start() itself says so.
    if (state.runner === null) return
    // Those that are kept, too: nothing of them is cached any more.
    sessions.failAll(error)
    reviver.runnerLost()
  })

  const announcer = createAnnouncer({
    state,
    store: deps.store,
    holder,
    links,
    pieceLinks,
    sessions,
    meter,
    tell,
    loadManifest: deps.loadManifest,
    changed,
  })
  const wakefulness = createWakefulness({
    sessions,
    tell,
    announce: () => announcer.again(),
    wallNow: deps.wallNow ?? deps.now,
  })

  function fail(thrown: unknown): void {
    if (state.gone !== null) return
    state.error = toCrowdError(thrown)
    state.gone = 'failed'
    void shutDown('failed')
  }

  function onState(next: SignalingState): void {
    state.signaling = next.kind
    if (next.kind === 'open') {
      announcer.welcomed(next.welcome).catch(fail)
      parking.begin()
    }
    if (next.kind === 'refused') fail(next.error)
    changed()
  }

  /** Once a second: a sign of life, measurements to the host when there are new ones, and round trips to the page. */
  function tick(): void {
    wakefulness.tick()
    announcer.stats()
    changed()
    stopTicking = deps.later(STATS_MS, tick)
  }

  async function shutDown(reason: string): Promise<void> {
    stopTicking()
    parking.stop()
    holder.stop()
    links.closeAll(reason)
    pieceLinks.closeAll(reason)
    tell({ kind: 'leave' })
    deps.connector.close()
    deps.signaling.close()
    changed()
    await deps.runner.close()
  }

  return {
    ...view,
    async start() {
      if (state.started) return
      state.started = true
      changed()
      try {
        state.runner = await deps.runner.start()
        await announcer.storage()
        // It may have left while it was tested.
        if (state.gone !== null) return
        deps.signaling.onMessage((message) =>
          dispatch(message, {
            links,
            pieceLinks,
            sessions,
            connector: deps.connector,
            manifest: () => state.manifest,
            modelChanged: (served) => announcer.modelChanged(served),
            assign: (order) => assign(order, { state, holder, pieceLinks, sessions, meter }),
            fail,
          }),
        )
        deps.signaling.onState(onState)
        deps.signaling.connect()
        tick()
      } catch (thrown) {
        fail(thrown)
      }
    },
    ...createPledging(state, announcer),
    sleep: wakefulness.sleep,
    wake: wakefulness.wake,
    async leave() {
      if (state.gone !== null) return
      state.gone = 'left'
      await shutDown('the device left')
    },
  }
}

type Stage = {
  readonly state: WorkerState
  readonly holder: StageHolder
  readonly pieceLinks: PieceLinks
  readonly sessions: Sessions
  readonly meter: StepMeter
}

/** Takes over what the host orders it to hold. @throws CrowdError */
async function assign(message: ServerMessageOf<'assign'>, stage: Stage): Promise<void> {
  const { state, holder, pieceLinks, sessions, meter } = stage
  const manifest = servedManifest(state, message)
  pieceLinks.expect(message.sources ?? 0)
  if (!sameRange(holder.held()?.range ?? null, message.range)) {
    meter.forgetSpeed()
    sessions.failAll(new CrowdError('stage-lost', 'the device was given other layers'))
  }
  await holder.assign(message, manifest)
}

/** Loading another one would compute another model's numbers under this one's name. @throws CrowdError model-invalid */
function servedManifest(
  { manifest }: WorkerState,
  { model, revision }: ServerMessageOf<'assign'>,
): Manifest {
  if (manifest?.revision === revision) return manifest
  throw new CrowdError(
    'model-invalid',
    `the host assigned layers of another build of ${model} than it serves`,
  )
}

function sinkOf(channel: Channel): FrameSink {
  return { lane: channel.lane, send: (frame) => channel.send(frame, 'bulk') }
}

/** What the owner of the device decides about it, and the host must hear. */
function createPledging(
  state: WorkerState,
  announcer: Pick<Announcer, 'pledge'>,
): Pick<Worker, 'setPledge' | 'pause' | 'resume' | 'setHidden'> {
  return {
    setPledge(memoryBytes) {
      state.pledgeBytes = memoryBytes
      void announcer.pledge()
    },
    async pause() {
      state.paused = true
      await announcer.pledge()
    },
    async resume() {
      state.paused = false
      await announcer.pledge()
    },
    setHidden(hidden) {
      state.hidden = hidden
      void announcer.pledge()
    },
  }
}

/** Nothing of a session is cached any more. */
function startedAnew(): CrowdError {
  return new CrowdError('stage-lost', 'the provider of this device was started anew')
}
