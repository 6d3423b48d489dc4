import { CrowdError } from '../core/errors.ts'
import type { StageOutput, StageRunner, StageStep } from '../runtime/stage-runner.ts'

/** The one executor of a stage, shared by its sessions. */
export type StepQueue = {
  /**
   * `rows`: of the step; `isWanted` is asked when its turn comes: a step after the release of its session would bring its
   * caches back. @throws CrowdError as StageRunner.run; aborted when it isn't wanted any more
   */
  run(step: StageStep, rows: number, isWanted: () => boolean): Promise<StageOutput>
}

/** A prompt gets its turn at least after so many tokens of others. */
const DECODE_RUN_MAX = 8

/**
 * One step at a time; steps of one row before longer ones, so that a long prompt doesn't hold up the answers of
 * others. Each session has one step here at most, so first come, first served is a turn for everybody.
 */
export function createStepQueue(runner: Pick<StageRunner, 'run'>): StepQueue {
  const decodes: (() => void)[] = []
  const prefills: (() => void)[] = []
  let running = false
  let decodeRun = 0

  function next(): (() => void) | undefined {
    const isPrefillDue = prefills.length > 0 && decodeRun >= DECODE_RUN_MAX
    const decode = isPrefillDue ? undefined : decodes.shift()
    decodeRun = decode === undefined ? 0 : decodeRun + 1
    return decode ?? prefills.shift()
  }

  function begin(): void {
    if (running) return
    const run = next()
    if (run === undefined) return
    running = true
    run()
  }

  return {
    run(step, rows, isWanted) {
      return new Promise((resolve, reject) => {
        const run = (): void => {
          const over = () => Promise.reject(new CrowdError('aborted', 'the session is over'))
          const output = isWanted() ? runner.run(step) : over()
          output.then(resolve, reject).finally(() => {
            running = false
            begin()
          })
        }
        const lane = rows === 1 ? decodes : prefills
        lane.push(run)
        begin()
      })
    },
  }
}
