import type { CrowdError } from '../core/errors.ts'
import type { PeerId } from '../core/ids.ts'
import type { BlockRange } from '../core/model/block-range.ts'
import type { RunnerReport } from '../runtime/stage-runner.ts'
import type { ChannelPath } from '../net/channel.ts'
import type { StoreUsage } from '../storage/shard-store.ts'

/** What the contribute page shows; a new object on every change. */
export type WorkerSnapshot = {
  readonly phase:
    | 'idle' // before start()
    | 'testing' // the device's self-test runs
    | 'connecting' // to the host
    | 'waiting' // connected, nothing to hold yet (spare)
    | 'fetching' // pieces of the assignment
    | 'loading' // into the runner
    | 'serving' // ready
    | 'paused'
    | 'left'
    | 'failed'
  readonly peer: PeerId | null
  readonly model: string | null
  readonly layerCount: number | null
  readonly range: BlockRange | null
  /** The server's words why this device holds what it holds. */
  readonly reason: string
  readonly runner: RunnerReport | null
  readonly pledgeBytes: number
  readonly doneBytes: number
  readonly totalBytes: number
  readonly fetchedBytes: number
  /** Those of them that came from peers. */
  readonly peerBytes: number
  readonly storage: StoreUsage | null
  readonly links: readonly {
    readonly peer: PeerId
    readonly path: ChannelPath | null
    readonly state: 'opening' | 'open' | 'closed'
    readonly rttMs: number | null
  }[]
  /** Forward passes of decode steps, and tokens (prefill included) that went through this stage. */
  readonly laps: number
  readonly tokens: number
  /** Mean of the recent decode steps, ms. */
  readonly stepMs: number | null
  readonly sessions: number
  readonly error: CrowdError | null
}

/** The role that lends compute. Made by createWorker(); does nothing until start(). */
export interface Worker {
  onChange(handler: (snapshot: WorkerSnapshot) => void): () => void
  snapshot(): WorkerSnapshot
  start(): Promise<void>
  /** Takes effect at once; the host re-plans. */
  setPledge(memoryBytes: number): void
  /** Finishes running steps, then holds still; pieces stay. Undone by resume() only. */
  pause(): Promise<void>
  resume(): Promise<void>
  setHidden(hidden: boolean): void
  /** The page is about to be frozen: the host's routes go round it at once, until wake(). */
  sleep(): void
  wake(): void
  /** Tells the host and the peers, frees everything. Idempotent. */
  leave(): Promise<void>
}
