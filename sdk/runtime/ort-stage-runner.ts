import { CrowdError, toCrowdError } from '../core/errors.ts'
import type { BackendCandidate, OrtBackend } from './ort-backend.ts'
import type { OrtQueue } from './ort-queue.ts'
import { createStageEngine, type StageEngine } from './stage-engine.ts'
import type { RunnerReport, StageRunner } from './stage-runner.ts'

export type OrtStageRunnerDeps = {
  /** Best first. The first one that opens and passes the self-test is used. */
  readonly candidates: readonly BackendCandidate[]
  /** The realm's one queue. */
  readonly queue: OrtQueue
  /** Rejects where the backend computes wrong numbers. */
  readonly selfTest: (engine: StageEngine) => Promise<void>
}

type Running = { readonly backend: OrtBackend; readonly engine: StageEngine }

/**
 * The StageRunner port over ONNX Runtime. After a device loss every call fails with stage-failed; a new
 * `start` opens and tests the providers again, says so in its notes, and all blocks are wanted anew.
 */
export function createOrtStageRunner(deps: OrtStageRunnerDeps): StageRunner {
  const { candidates, queue, selfTest } = deps
  let running: Running | null = null
  let starting: Promise<RunnerReport> | null = null
  let closed = false

  async function start(): Promise<RunnerReport> {
    if (closed) throw closedError()
    const failure = running?.backend.failure() ?? null
    if (running !== null && failure === null) return running.backend.report
    await stop()
    return choose(failure === null ? [] : [failure])
  }

  async function choose(before: readonly string[]): Promise<RunnerReport> {
    const notes = [...before]
    let code: 'provider-unavailable' | 'self-test-failed' = 'provider-unavailable'
    for (const { name, open } of candidates) {
      try {
        const backend = await queue.run(`opening ${name}`, OPEN_MS, open)
        try {
          await test(backend)
          if (closed) throw closedError()
        } catch (thrown) {
          backend.close()
          throw thrown
        }
        const report = { ...backend.report, notes: [...notes, ...backend.report.notes] }
        running = { backend: { ...backend, report }, engine: createStageEngine({ backend, queue }) }
        return report
      } catch (thrown) {
        if (closed) throw closedError()
        const error = toCrowdError(thrown, 'provider-unavailable')
        notes.push(`${name}: ${error.message}`)
        if (error.code === 'self-test-failed') code = error.code
        // A hung runtime would be used beside the next one; only a fresh thread helps.
        if (error.code === 'timeout') throw error
      }
    }
    throw new CrowdError(code, notes.join('; '))
  }

  async function test(backend: OrtBackend): Promise<void> {
    const engine = createStageEngine({ backend, queue })
    try {
      await selfTest(engine)
    } finally {
      await engine.close()
    }
  }

  async function stop(): Promise<void> {
    const old = running
    running = null
    if (old === null) return
    await old.engine.close()
    old.backend.close()
  }

  function engine(): StageEngine {
    if (running === null) throw new CrowdError('stage-failed', 'the runner is not started')
    const failure = running.backend.failure()
    if (failure !== null) throw new CrowdError('stage-failed', failure)
    return running.engine
  }

  return {
    async start() {
      starting ??= start().finally(() => {
        starting = null
      })
      return starting
    },
    setStage: async (manifest, range) => engine().setStage(manifest, range),
    loadBlock: async (block, bytes) => engine().loadBlock(block, bytes),
    run: async (step) => engine().run(step),
    async release(session) {
      await running?.engine.release(session)
    },
    async close() {
      closed = true
      // What it opened meanwhile it closes itself.
      await starting?.catch(() => undefined)
      await stop()
    },
  }
}

function closedError(): CrowdError {
  return new CrowdError('stage-failed', 'the runner is closed')
}

/** Fetching and compiling the runtime's WASM is part of opening. */
const OPEN_MS = 60_000
