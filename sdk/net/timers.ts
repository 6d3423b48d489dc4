/** PORT. Time as adapters see it; tests bring a manual one. */
export interface Timers {
  /** Milliseconds of a clock that never goes back. */
  now(): number
  /** Runs `task` once after `delayMs`; the result cancels it. */
  after(delayMs: number, task: () => void): () => void
}

export function createSystemTimers(): Timers {
  return {
    now: () => performance.now(),
    after(delayMs, task) {
      const handle = setTimeout(task, delayMs)
      return () => clearTimeout(handle)
    },
  }
}
