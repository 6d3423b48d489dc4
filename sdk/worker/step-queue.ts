import { CrowdError } from '../core/errors.ts'
import type { StageOutput, StageRunner, StageStep } from '../runtime/stage-runner.ts'

/** The one executor of a stage, shared by its sessions. */
export type StepQueue = {
  /**
   * `rows`: of the step; `isWanted` is asked when its turn comes: a step after the release of its session would bring its
   * caches back. @throws CrowdError as StageRunner.run; aborted when it isn't wanted any more
   */
  run(step: StageStep, rows: number, isWanted: () => boolean): Promise<StageOutput>
  /** The step that runs hangs: what waits, and what comes until it is over, fails with the error. */
  block(error: CrowdError): void
}

type Turn = { begin(): void; readonly reject: (error: CrowdError) => void }

/** A prompt gets its turn at least after so many tokens of others. */
const DECODE_RUN_MAX = 8

/**
 * One step at a time; steps of one row before longer ones, so that a long prompt doesn't hold up the answers of
 * others. Each session has one step here at most, so first come, first served is a turn for everybody.
 */
export function createStepQueue(runner: Pick<StageRunner, 'run'>): StepQueue {
  const decodes: Turn[] = []
  const prefills: Turn[] = []
  let running = false
  let blocked: CrowdError | null = null
  let decodeRun = 0

  function next(): Turn | undefined {
    const isPrefillDue = prefills.length > 0 && decodeRun >= DECODE_RUN_MAX
    const decode = isPrefillDue ? undefined : decodes.shift()
    decodeRun = decode === undefined ? 0 : decodeRun + 1
    return decode ?? prefills.shift()
  }

  function begin(): void {
    if (running) return
    const turn = next()
    if (turn === undefined) return
    running = true
    turn.begin()
  }

  return {
    run(step, rows, isWanted) {
      return new Promise((resolve, reject) => {
        const run = (): void => {
          const over = () => Promise.reject(new CrowdError('aborted', 'the session is over'))
          const output = isWanted() ? runner.run(step) : over()
          output.then(resolve, reject).finally(() => {
            running = false
            blocked = null
            begin()
          })
        }
        if (blocked !== null) {
          reject(blocked)
          return
        }
        const lane = rows === 1 ? decodes : prefills
        lane.push({ begin: run, reject })
        begin()
      })
    },
    block(error) {
      if (!running) return
      blocked = error
      for (const turn of [...decodes.splice(0), ...prefills.splice(0)]) turn.reject(error)
    },
  }
}
