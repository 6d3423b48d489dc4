import { createTokenBucket } from '../token-bucket.ts'

/** Requests of one key or address: a person's tools stay far below, and a loop that got loose is slowed down. */
const PER_SECOND = 30
const BURST = 120
/** Callers remembered; beyond, those seen longest ago begin anew. */
const CALLERS_MAX = 4_096

/** Answers of one caller that wait or run at once: a good half of what the host takes, so that others get in. */
export const ANSWERS_PER_CALLER = 12

/** Limits each caller by its own rate. */
export type CallerRates = {
  /** Counts one request; 0, or ms to wait when it is one too many. */
  take(caller: string): number
  /** Makes room for some answers until the returned function is called; null where there is none. */
  enter(caller: string, answers: number): (() => void) | null
}

export function createCallerRates(now: () => number): CallerRates {
  // Those seen last are at the end.
  const buckets = new Map<string, ReturnType<typeof createTokenBucket>>()
  const open = new Map<string, number>()
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
    enter(caller, answers) {
      const before = open.get(caller) ?? 0
      if (before + answers > ANSWERS_PER_CALLER) return null
      open.set(caller, before + answers)
      return () => {
        const left = (open.get(caller) ?? 0) - answers
        if (left > 0) open.set(caller, left)
        else open.delete(caller)
      }
    },
  }
}
