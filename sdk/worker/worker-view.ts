import type { CrowdError } from '../core/errors.ts'
import type { PeerId } from '../core/ids.ts'
import { blockPieces, type Manifest } from '../core/model/manifest.ts'
import type { PieceHash } from '../core/ids.ts'
import type { SignalingState } from '../net/signaling.ts'
import type { ClientMessageOf } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { RunnerReport } from '../runtime/stage-runner.ts'
import type { StoreUsage } from '../storage/shard-store.ts'
import type { HeldStage } from './stage-holder.ts'
import type { StepMeter } from './step-meter.ts'
import type { WorkerSnapshot } from './worker-snapshot.ts'

/** The model that a host serves. */
export type ServedModel = Pick<ServerMessageOf<'model'>, 'model' | 'revision' | 'manifestPath'>

/** What a worker knows of itself, apart from its stage, links and sessions. Changed by the worker alone. */
export type WorkerState = {
  started: boolean
  gone: 'left' | 'failed' | null
  paused: boolean
  hidden: boolean
  pledgeBytes: number
  runner: RunnerReport | null
  peer: PeerId | null
  manifest: Manifest | null
  /** What the host said last that it serves; its manifest may still be on its way. */
  served: ServedModel | null
  signaling: SignalingState['kind']
  storage: StoreUsage | null
  error: CrowdError | null
}

export function freshState(options: { pledgeBytes: number; paused: boolean }): WorkerState {
  return {
    started: false,
    gone: null,
    paused: options.paused,
    hidden: false,
    pledgeBytes: options.pledgeBytes,
    runner: null,
    peer: null,
    manifest: null,
    served: null,
    signaling: 'connecting',
    storage: null,
    error: null,
  }
}

const NOTHING_HELD: Pick<
  HeldStage,
  'range' | 'reason' | 'doneBytes' | 'totalBytes' | 'fetchedBytes' | 'peerBytes' | 'error'
> = {
  range: null,
  reason: '',
  doneBytes: 0,
  totalBytes: 0,
  fetchedBytes: 0,
  peerBytes: 0,
  error: null,
}

export type WorkerParts = {
  readonly held: HeldStage | null
  readonly links: WorkerSnapshot['links']
  readonly meter: StepMeter
  readonly sessions: number
}

/** What the page is shown. */
export function snapshotOf(state: WorkerState, parts: WorkerParts): WorkerSnapshot {
  const { range, reason, doneBytes, totalBytes, fetchedBytes, peerBytes, error } =
    parts.held ?? NOTHING_HELD
  return {
    phase: phaseOf(state, parts.held),
    peer: state.peer,
    model: state.manifest?.id ?? null,
    layerCount: state.manifest?.layerCount ?? null,
    range,
    reason,
    runner: state.runner,
    pledgeBytes: state.pledgeBytes,
    doneBytes,
    totalBytes,
    fetchedBytes,
    peerBytes,
    storage: state.storage,
    links: parts.links,
    laps: parts.meter.laps,
    tokens: parts.meter.tokens,
    stepMs: parts.meter.stepMs,
    sessions: parts.sessions,
    error: state.error ?? error,
  }
}

function phaseOf(state: WorkerState, held: HeldStage | null): WorkerSnapshot['phase'] {
  if (state.gone !== null) return state.gone
  if (!state.started) return 'idle'
  if (state.runner === null) return 'testing'
  if (state.signaling !== 'open' || state.manifest === null) return 'connecting'
  if (state.paused) return 'paused'
  if (held === null || held.range === null) return 'waiting'
  return held.state === 'ready' ? 'serving' : held.state
}

/** What this device gives right now, or null before it knows. `stored`: what lies in its shard store. */
export function pledgeOf(
  state: WorkerState,
  stored: readonly PieceHash[],
): ClientMessageOf<'pledge'> | null {
  if (state.runner === null || state.manifest === null) return null
  const ours = new Set(state.manifest.blocks.flatMap(blockPieces).map((piece) => piece.sha256))
  return {
    kind: 'pledge',
    memoryBytes: state.paused ? 0 : state.pledgeBytes,
    provider: state.runner.provider,
    threads: state.runner.threads,
    revision: state.manifest.revision,
    cached: stored.filter((hash) => ours.has(hash)),
    hidden: state.hidden,
  }
}
