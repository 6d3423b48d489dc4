/** Where the time of a request's laps goes, seen from the last stage. Times in ms. */
export type LapTimings = {
  /** Tokens chosen so far. */
  readonly tokens: number
  readonly lapMs: number
  /** Sum over the stages of one lap. */
  readonly computeMs: number
  /** (lapMs − computeMs) ÷ hops; 0 for a chain of one stage, which has no hops. */
  readonly hopMs: number
  readonly hops: number
}

/**
 * Counts laps: one ends whenever the last stage chooses a token, so the time between two choices is a
 * whole lap. The prefill is not a lap.
 */
export type LapMeter = {
  /** A token was chosen at `now` after the stages computed for `computeMs` since the one before. */
  lap(now: number, computeMs: number): void
  timings(): LapTimings
}

export function createLapMeter(stages: number): LapMeter {
  const hops = stages > 1 ? stages : 0
  let tokens = 0
  let firstAt = 0
  let lastAt = 0
  let computed = 0
  return {
    lap(now, computeMs) {
      if (tokens === 0) firstAt = now
      else computed += computeMs
      lastAt = now
      tokens += 1
    },
    timings() {
      const laps = Math.max(tokens - 1, 1)
      const lapMs = (lastAt - firstAt) / laps
      const computeMs = computed / laps
      return {
        tokens,
        lapMs,
        computeMs,
        hopMs: hops === 0 ? 0 : Math.max(0, lapMs - computeMs) / hops,
        hops,
      }
    },
  }
}
