/** Averages a rate and allows bursts: holds up to `burst`, refilled with `perSecond`. */
type TokenBucket = {
  /** Takes `amount`; false, and takes nothing, when there isn't that much. */
  take(amount: number): boolean
  /** Ms until `amount` would be there; Infinity when it never will. */
  waitMs(amount: number): number
}

export function createTokenBucket(
  options: { readonly perSecond: number; readonly burst: number },
  now: () => number,
): TokenBucket {
  let level = options.burst
  let filledAt = now()
  const refill = (): void => {
    const time = now()
    level = Math.min(options.burst, level + ((time - filledAt) / 1_000) * options.perSecond)
    filledAt = time
  }
  return {
    take(amount) {
      refill()
      if (amount > level) return false
      level -= amount
      return true
    },
    waitMs(amount) {
      refill()
      if (amount > options.burst) return Infinity
      return Math.max(0, ((amount - level) / options.perSecond) * 1_000)
    },
  }
}
