export type StallLimit = {
  /** For the request that is watched. */
  readonly signal: AbortSignal
  /** Something came: the time starts anew. */
  progress(): void
  isStalled(): boolean
  /** Stops watching. Idempotent. */
  end(): void
}

/** Runs `task` after `ms` unless the returned function was called. */
export type Later = (ms: number, task: () => void) => () => void

const systemLater: Later = (ms, task) => {
  const timer = setTimeout(task, ms)
  return () => clearTimeout(timer)
}

/** Aborts when nothing happens for `stallMs`, or when the outer signal does. */
export function createStallLimit(
  outer: AbortSignal,
  stallMs: number,
  later: Later = systemLater,
): StallLimit {
  const controller = new AbortController()
  let cancel: () => void = () => undefined
  const progress = (): void => {
    cancel()
    cancel = later(stallMs, () => controller.abort())
  }
  progress()
  return {
    signal: AbortSignal.any([outer, controller.signal]),
    progress,
    isStalled: () => controller.signal.aborted,
    end: () => cancel(),
  }
}
