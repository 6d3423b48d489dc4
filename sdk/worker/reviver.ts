import { CrowdError } from '../core/errors.ts'
import type { RunnerReport, StageRunner } from '../runtime/stage-runner.ts'
import type { StageHolder } from './stage-holder.ts'

/** Failures of a step after which the provider may be gone: a lost GPU device, a killed thread. */
const SUSPICIOUS: ReadonlySet<string> = new Set(['stage-failed', 'timeout', 'out-of-memory'])
/** A device that keeps failing does more harm than good. */
const REVIVALS_MAX = 3

export type Reviver = {
  /** A step failed with this code. Looks after the runner, unless the failure says nothing about it. */
  stepFailed(code: string): void
  /** The runner lost all that it held, while no step ran. */
  runnerLost(): void
}

/**
 * Brings a lost provider back: a healthy runner answers `start` at once and wants no block; a lost one
 * starts anew, is self-tested, and gets its blocks from the store.
 */
export function createReviver(deps: {
  runner: Pick<StageRunner, 'start'>
  holder: Pick<StageHolder, 'reload'>
  onRevived(report: RunnerReport): void
  /** It failed too often, or could not be brought back. */
  onGivenUp(thrown: unknown): void
}): Reviver {
  let reviving = false
  let revivals = 0

  async function revive(): Promise<void> {
    reviving = true
    try {
      const report = await deps.runner.start()
      if (!(await deps.holder.reload())) return
      revivals += 1
      if (revivals > REVIVALS_MAX) {
        throw new CrowdError(
          'stage-failed',
          `the provider of this device was lost ${revivals} times`,
        )
      }
      deps.onRevived(report)
    } catch (thrown) {
      deps.onGivenUp(thrown)
    } finally {
      reviving = false
    }
  }

  return {
    stepFailed(code) {
      if (SUSPICIOUS.has(code) && !reviving) void revive()
    },
    runnerLost() {
      if (!reviving) void revive()
    },
  }
}
