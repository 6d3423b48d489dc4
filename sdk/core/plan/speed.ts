/** How fast a device is, in ms per layer; a property of the device, whatever it holds. */
export type Speed = {
  /** Smoothed over the recent measurements: what the router goes by. */
  readonly ms: number
  /** What the planner goes by: follows `ms` only once that differs clearly, so that noise moves nobody. */
  readonly settledMs: number
}

/** Weight of a new measurement; each is a mean over steps itself. */
const SMOOTHING = 0.3

/** Two measurements that each are 20 % off in opposite directions differ by this: 1.2 ÷ 0.8. */
const CLEARLY = 1.5

/**
 * The speed after one more measurement. As long as measurements stay within 20 % of the truth, `settledMs` keeps
 * the value of the first one: both then lie within 20 % of the truth, and so no further apart than CLEARLY.
 *
 * @example updateSpeed(null, 4) // { ms: 4, settledMs: 4 }
 */
export function updateSpeed(before: Speed | null, measuredMs: number): Speed {
  if (before === null) return { ms: measuredMs, settledMs: measuredMs }
  const ms = before.ms + SMOOTHING * (measuredMs - before.ms)
  return { ms, settledMs: isClearlyOther(before.settledMs, ms) ? ms : before.settledMs }
}

function isClearlyOther(a: number, b: number): boolean {
  // A hair more than the ratio: 1.2 ÷ 0.8 itself may be rounded up.
  return Math.max(a, b) > Math.min(a, b) * (CLEARLY + 1e-9)
}
