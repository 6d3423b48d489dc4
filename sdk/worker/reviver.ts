import { CrowdError } from '../core/errors.ts'
import type { RunnerReport, StageRunner } from '../runtime/stage-runner.ts'
import type { StageHolder } from './stage-holder.ts'

/** Failures of a step after which the provider may be gone: a lost GPU device, a killed thread. */
const SUSPICIOUS: ReadonlySet<string> = new Set(['stage-failed', 'timeout', 'out-of-memory'])
/** The first time it comes back as it was, the second time with less, then not at all. */
const LOSSES_MAX = 3
/** A loss so long ago says nothing about what the device can bear. */
const LOSS_FORGOTTEN_MS = 1_800_000

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
  now(): number
  /** It failed too often, or could not be brought back. */
  onGivenUp(thrown: unknown): void
}): Reviver {
  let reviving = false
  let losses = 0
  let lostAt = 0

  async function revive(): Promise<void> {
    reviving = true
    try {
      const report = await deps.runner.start()
      if (deps.now() - lostAt > LOSS_FORGOTTEN_MS) losses = 0
      if (!(await deps.holder.reload(losses === 0 ? undefined : tooMuch()))) return
      losses += 1
      lostAt = deps.now()
      if (losses >= LOSSES_MAX)
        throw new CrowdError('stage-failed', `the provider of this device was lost ${losses} times`)
      deps.onRevived(report)
    } catch (thrown) {
      deps.onGivenUp(thrown)
    } finally {
      reviving = false
    }
  }

  /** What memory was too small for says so to nobody on some devices: they are just lost. */
  function tooMuch(): CrowdError {
    return new CrowdError('out-of-memory', 'the provider of this device was lost again')
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
