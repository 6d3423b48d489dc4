import { CrowdError, type ErrorCode } from '../core/errors.ts'
import type { SignalingState } from '../net/signaling.ts'
import type { NodeDevice } from '../node-worker.node.ts'
import type { Worker, WorkerSnapshot } from '../worker/worker-snapshot.ts'
import type { WorkerConfig } from './config.ts'
import { errorEvent, eventsBetween, type WorkerEvent } from './events.ts'
import { exitCodeOf } from './exit-code.ts'

export type WorkerRunDeps = {
  readonly config: WorkerConfig
  readonly device: Pick<NodeDevice, 'join'>
  emit(event: WorkerEvent): void
  /** Why the host can't be reached; null when it can. */
  checkHost(origin: string): Promise<CrowdError | null>
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

export type WorkerRun = {
  /** The exit code. Never rejects. */
  readonly done: Promise<number>
  /** Lets running answers end, tells the host, and leaves. */
  drain(): void
}

/** Answers that still run get this long when the worker is told to leave. */
export const DRAIN_MS = 10_000
/** Pauses before joining anew double from the first to the last. */
const RETRY_FIRST_MS = 1_000
const RETRY_LAST_MS = 60_000

/** Failures that pass without anybody's help: a host that restarts or is full, a driver that comes back. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'piece-unavailable',
  'model-invalid',
  'pool-full',
  'stage-failed',
  'timeout',
  'out-of-memory',
  'signaling-closed',
])

/** A worker's life: joins, joins anew after failures that pass, leaves when told to. */
export function startWorkerRun(deps: WorkerRunDeps): WorkerRun {
  const { config, emit } = deps
  let worker: Worker | null = null
  let cancelRetry: () => void = () => undefined
  let failures = 0
  let wasJoined = false
  let toldLost = false
  let draining = false
  let over = false
  let settle: (exitCode: number) => void = () => undefined
  const done = new Promise<number>((resolve) => {
    settle = resolve
  })

  function finish(exitCode: number): void {
    if (over) return
    over = true
    cancelRetry()
    settle(exitCode)
  }

  async function leave(exitCode: number): Promise<void> {
    await worker?.leave()
    if (over) return
    if (exitCode === 0) emit({ event: 'left' })
    finish(exitCode)
  }

  function fail(error: CrowdError): void {
    if (over) return
    emit(errorEvent(explained(error, config)))
    if (draining) finish(0)
    else if (config.once || !PASSING.has(error.code)) finish(exitCodeOf(error.code))
    else {
      const pauseMs = Math.min(RETRY_FIRST_MS * 2 ** failures, RETRY_LAST_MS)
      failures += 1
      emit({ event: 'retrying', pauseMs })
      cancelRetry = deps.later(pauseMs, join)
    }
  }

  function onHost(state: SignalingState): void {
    if (over || draining) return
    if (state.kind === 'open') {
      wasJoined = true
      toldLost = false
      const { name, model } = state.welcome
      emit({ event: 'joined', host: config.link.origin, name, model })
    } else if (state.kind === 'lost' && !toldLost) {
      toldLost = true
      void tellLost(state.reason)
    }
  }

  async function tellLost(reason: string): Promise<void> {
    const error = await deps.checkHost(config.link.origin)
    if (over || draining) return
    // Nothing but another setting on this machine changes that.
    const isFinal = error?.code === 'host-untrusted' || (config.once && !wasJoined)
    if (!isFinal)
      emit({ event: 'host-lost', reason: error?.message ?? `the host is lost: ${reason}` })
    if (isFinal) {
      const final = error ?? new CrowdError('host-unreachable', reason)
      emit(errorEvent(final))
      await leave(exitCodeOf(final.code))
    } else if (config.once) await leave(0)
  }

  function join(): void {
    let before: WorkerSnapshot | null = null
    const joined = deps.device.join({
      url: config.link.origin,
      secret: config.link.secret,
      name: config.name,
      pledgeBytes: config.pledgeBytes,
      ort: config.ort,
      onHost,
    })
    worker = joined
    joined.onChange((now) => {
      if (over) return
      for (const event of eventsBetween(before, now)) emit(event)
      const isFresh = before?.phase !== now.phase
      before = now
      if (isFresh && now.phase === 'serving') failures = 0
      if (isFresh && now.phase === 'failed')
        fail(now.error ?? new CrowdError('internal', 'no reason'))
    })
    void joined.start()
  }

  async function drain(): Promise<void> {
    const leaving = worker
    emit({ event: 'draining', sessions: leaving?.snapshot().sessions ?? 0 })
    if (leaving !== null) {
      await leaving.pause()
      await withoutSessions(leaving, deps.later)
    }
    await leave(0)
  }

  join()
  return {
    done,
    drain() {
      if (draining || over) return
      draining = true
      cancelRetry()
      void drain()
    },
  }
}

/** Resolves when no answer goes through the worker any more, or after DRAIN_MS. */
function withoutSessions(worker: Worker, later: WorkerRunDeps['later']): Promise<void> {
  return new Promise((resolve) => {
    let stop: () => void = () => undefined
    const cancel = later(DRAIN_MS, () => end())
    const end = (): void => {
      cancel()
      // The first call comes before `stop` exists.
      queueMicrotask(() => stop())
      resolve()
    }
    stop = worker.onChange(({ sessions, phase }) => {
      if (sessions === 0 || phase === 'failed' || phase === 'left') end()
    })
  })
}

/** A private pool's refusal says more when the link had no secret at all. */
function explained(error: CrowdError, { link }: WorkerConfig): CrowdError {
  if (error.code !== 'wrong-secret' || link.secret !== '') return error
  return new CrowdError(
    'wrong-secret',
    'this pool is private and the link has no secret: copy the whole join link, with all that follows the #',
    { cause: error },
  )
}
