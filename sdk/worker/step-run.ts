import { CrowdError } from '../core/errors.ts'
import { STAGE_STEP_MS } from '../core/limits.ts'
import type { StageOutput, StageStep } from '../runtime/stage-runner.ts'
import type { SentRows } from './sent-rows.ts'
import type { StepQueue } from './step-queue.ts'

/** What a device keeps of a session from one epoch to the next. */
export type SessionRecord = {
  /** Rows in the caches, from position 0 on. */
  cached: number
  readonly sent: SentRows
}

export type StageProgress = {
  /** Rows computed up to here, from position 0 on. */
  readonly position: number
  /** A step runs, or waits for its turn. */
  readonly computing: boolean
}

/** The steps of one session on the runner: what they leave behind, and how long they may take. */
export type StepRun = {
  /** `rows`: of the step. @throws CrowdError bad-frame where rows before it are missing, and as StageRunner.run */
  run(step: StageStep, rows: number): Promise<StageOutput>
  progress(): StageProgress
}

/** After so many decode steps it is known how long they take. */
const STEPS_KNOWN = 4
/** A step that takes so many times as long as the slowest before hangs, … */
const STEP_SLACK = 20
/** … but a device may well stand still for so long. */
const STEP_LIMIT_MS = 8_000

export function createStepRun(deps: {
  readonly queue: StepQueue
  readonly record: SessionRecord
  /** False once the session is over. */
  isWanted(): boolean
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
  /** A step hangs; it isn't awaited any more. */
  onHung(error: CrowdError): void
}): StepRun {
  const { record } = deps
  let decodeSteps = 0
  let slowestMs = 0
  let position = 0
  let computing = false

  /** What hangs is noticed long before the runner's own limit, once it is known how long steps take here. */
  function limitMs(rows: number): number {
    if (decodeSteps < STEPS_KNOWN) return STAGE_STEP_MS
    return Math.min(STAGE_STEP_MS, Math.max(STEP_LIMIT_MS, slowestMs * rows * STEP_SLACK))
  }

  function hung(): void {
    const message = `a step takes ${STEP_SLACK} times as long as the slowest before`
    const error = new CrowdError('timeout', message)
    deps.onHung(error)
    // What waits behind it would wait as long, and no limit runs for it.
    deps.queue.block(error)
  }

  return {
    async run(step, rows) {
      // Not a fault of this device's runner, which would say the same: the rows came so, over a link.
      if (step.position > record.cached)
        throw new CrowdError(
          'bad-frame',
          `rows from position ${step.position} on, but only ${record.cached} are here`,
        )
      computing = true
      let stop: () => void = () => undefined
      const begins = (): boolean => {
        if (!deps.isWanted()) return false
        // Its turn may come late on a device that is only slow.
        stop = deps.later(limitMs(rows), hung)
        // What fails may leave anything in the caches.
        record.cached = 0
        return true
      }
      const output = await deps.queue.run(step, rows, begins).finally(() => {
        computing = false
        stop()
      })
      position = step.position + rows
      record.cached = position
      if (output.kind === 'hidden') record.sent.append(step.position, output.data)
      if (rows === 1) {
        decodeSteps += 1
        slowestMs = Math.max(slowestMs, output.computeMs)
      }
      return output
    },
    progress: () => ({ position, computing }),
  }
}
