import { CrowdError, toCrowdError } from '../core/errors.ts'
import { FETCH_TRIES } from '../core/limits.ts'
import { readFailure, type Asked, type HubFailure } from './hub-failure.ts'
import type { HubOptions } from './hub-options.ts'
import type { HubAnswer } from './hub-request.ts'
import { stoppedError } from './stopped-error.ts'

const PAUSE_MS = 500
const PAUSE_MAX_MS = 15_000
/** The hub's windows have five minutes. */
const LIMIT_WAIT_MAX_MS = 6 * 60_000
const LIMIT_WAITS = 5
/** After the window's end, so that its first second is not met too early. */
const LIMIT_MARGIN_MS = 1_000

export type Retry = {
  /**
   * Waits as the failure asks for.
   * @throws CrowdError the failure itself once it is no use to go on, or aborted
   */
  after(failure: HubFailure): Promise<void>
  /** Something came: failures are counted anew. */
  succeeded(): void
}

/** Patience for one thing that is asked for. */
export function createRetry(options: HubOptions, signal: AbortSignal): Retry {
  const { timing, notice } = options
  let failures = 0
  let limits = 0

  async function waitForLimit(failure: HubFailure): Promise<void> {
    limits += 1
    const { error, waitMs } = failure
    const seconds = Math.ceil(waitMs / 1000)
    if (waitMs > LIMIT_WAIT_MAX_MS || limits > LIMIT_WAITS) {
      const message = `${error.message}; it asks to wait ${seconds} s`
      throw new CrowdError(error.code, message)
    }
    notice?.(`${error.message}; going on in ${seconds} s`)
    await timing.wait(waitMs + LIMIT_MARGIN_MS * timing.random(), signal)
  }

  return {
    async after(failure) {
      if (signal.aborted) throw stoppedError()
      if (failure.next === 'give-up') throw failure.error
      if (failure.next === 'limited') {
        await waitForLimit(failure)
        return
      }
      failures += 1
      if (failures >= FETCH_TRIES) throw failure.error
      // A new address costs no pause the first time: that is how signed ones end.
      if (failure.next === 'moved' && failures === 1) return
      const pause = Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** (failures - 1))
      await timing.wait(pause * (0.5 + timing.random() / 2), signal)
    },
    succeeded() {
      failures = 0
      limits = 0
    },
  }
}

/** A thrown error as a failure: the network's may pass, others don't. */
export function thrownFailure(thrown: unknown): HubFailure {
  const error = toCrowdError(thrown)
  const passes = error.code === 'hub-unavailable' || error.code === 'download-corrupt'
  return { error, next: passes ? 'later' : 'give-up', waitMs: 0 }
}

/** @throws the failure of an answer that is none of `wanted`, after its body was dropped */
export async function failureOf(
  answer: HubAnswer,
  asked: Asked,
  wanted: readonly number[],
): Promise<HubFailure | null> {
  if (wanted.includes(answer.status)) return null
  await answer.cancel()
  return readFailure(answer, asked)
}
