export type StallLimit = {
  /** For the request that is watched. */
  readonly signal: AbortSignal
  /** Something came: the time starts anew. */
  progress(): void
  isStalled(): boolean
  /** Stops watching. Idempotent. */
  end(): void
}

/** Aborts when nothing happens for `stallMs`, or when the outer signal does. */
export function createStallLimit(outer: AbortSignal, stallMs: number): StallLimit {
  const controller = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const progress = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      controller.abort()
    }, stallMs)
  }
  progress()
  return {
    signal: AbortSignal.any([outer, controller.signal]),
    progress,
    isStalled: () => controller.signal.aborted,
    end() {
      clearTimeout(timer)
    },
  }
}
