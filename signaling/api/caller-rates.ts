import { createTokenBucket } from '../token-bucket.ts'

/** Requests of one key or address: a person's tools stay far below, and a loop that got loose is slowed down. */
const PER_SECOND = 30
const BURST = 120
/** Callers remembered; beyond, those seen longest ago begin anew. */
const CALLERS_MAX = 4_096

/** Limits each caller by its own rate. */
export type CallerRates = {
  /** Counts one request; 0, or ms to wait when it is one too many. */
  take(caller: string): number
}

export function createCallerRates(now: () => number): CallerRates {
  // Those seen last are at the end.
  const buckets = new Map<string, ReturnType<typeof createTokenBucket>>()
  return {
    take(caller) {
      const bucket =
        buckets.get(caller) ?? createTokenBucket({ perSecond: PER_SECOND, burst: BURST }, now)
      buckets.delete(caller)
      buckets.set(caller, bucket)
      for (const oldest of buckets.keys()) {
        if (buckets.size <= CALLERS_MAX) break
        buckets.delete(oldest)
      }
      return bucket.take(1) ? 0 : Math.max(1, bucket.waitMs(1))
    },
  }
}
