import { CrowdError } from '../../sdk/core/errors.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import type { StageRunner, StageStep } from '../../sdk/runtime/stage-runner.ts'
import { createFakeStageRunner, type FakeStageRunner } from '../support/fake-stage-runner.ts'

export type SimRunner = StageRunner & {
  /** Rows that each session's caches hold. */
  caches: FakeStageRunner['caches']
  readonly steps: number
  /** The device that computes is gone with all that it held, until the next start. `isTold`: with the thread that it ran in. */
  lose(isTold: boolean): void
}

export type SimRunnerDeps = {
  readonly timers: Timers
  /** What a step of so many rows takes, ms. */
  stepMs(rows: number): number
  /** What loading one block takes, ms. */
  readonly loadMs: number
  /** Called before each step. */
  beforeStep(step: StageStep): void
}

/** Starting anew and the self-test, ms. */
const REVIVE_MS = 400

/** The exact runner of the tests, with a device's speed: one call after the other, each in its time. */
export function createSimRunner(deps: SimRunnerDeps): SimRunner {
  let inner = createFakeStageRunner()
  let lost: CrowdError | null = null
  let onLost: (error: CrowdError) => void = () => undefined
  const { timers } = deps
  let steps = 0
  let width = 1
  let tail: Promise<unknown> = Promise.resolve()

  function queued<T>(job: () => Promise<T>): Promise<T> {
    const result = tail.then(job)
    tail = result.catch(() => undefined)
    return result
  }

  const take = (ms: number): Promise<void> => new Promise((done) => void timers.after(ms, done))

  function checkThere(): void {
    if (lost !== null) throw lost
  }

  return {
    start: () =>
      queued(async () => {
        if (lost !== null) {
          await take(REVIVE_MS)
          inner = createFakeStageRunner()
          lost = null
        }
        return await inner.start()
      }),
    setStage: (manifest, range) =>
      queued(() => {
        checkThere()
        width = manifest.hiddenSize
        return inner.setStage(manifest, range)
      }),
    loadBlock: (block, bytes) =>
      queued(async () => {
        await take(deps.loadMs)
        checkThere()
        await inner.loadBlock(block, bytes)
      }),
    run: (step) =>
      queued(async () => {
        checkThere()
        deps.beforeStep(step)
        steps += 1
        const { input } = step
        const rows = input.kind === 'tokens' ? input.ids.length : input.data.length / width
        const output = await inner.run(step)
        const computeMs = deps.stepMs(rows)
        await take(computeMs)
        checkThere()
        return { ...output, computeMs }
      }),
    release: (session) => queued(() => inner.release(session)),
    onLost(listener) {
      onLost = listener
    },
    lose(isTold) {
      lost = new CrowdError('stage-failed', 'the device that computes was lost')
      if (isTold) onLost(lost)
    },
    close: () => inner.close(),
    caches: () => inner.caches(),
    get steps() {
      return steps
    },
  }
}
