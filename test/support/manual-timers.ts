import type { Timers } from '../../sdk/net/timers.ts'

export type ManualTimers = Timers & {
  /** Moves the clock and runs what falls due, in order; lets promises settle between two tasks. */
  advance(ms: number): Promise<void>
  /** Moves the clock alone, as when the machine slept: timers fire late, at the next advance. */
  sleep(ms: number): void
  /** Tasks that wait; 0 after everything was closed. */
  readonly pending: number
}

/** A clock that only a test moves. */
export function createManualTimers(): ManualTimers {
  let nowMs = 0
  let tasks: { dueMs: number; task: () => void }[] = []

  function takeDue(untilMs: number) {
    const next = tasks.toSorted((a, b) => a.dueMs - b.dueMs)[0]
    if (next === undefined || next.dueMs > untilMs) return null
    tasks = tasks.filter((entry) => entry !== next)
    return next
  }

  return {
    now: () => nowMs,
    after(delayMs, task) {
      const entry = { dueMs: nowMs + delayMs, task }
      tasks.push(entry)
      return () => {
        tasks = tasks.filter((other) => other !== entry)
      }
    },
    async advance(ms) {
      const untilMs = nowMs + ms
      await settle()
      for (let due = takeDue(untilMs); due !== null; due = takeDue(untilMs)) {
        nowMs = Math.max(nowMs, due.dueMs)
        due.task()
        await settle()
      }
      nowMs = untilMs
    },
    sleep(ms) {
      nowMs += ms
    },
    get pending() {
      return tasks.length
    },
  }
}

/** Lets everything that waits for a promise run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}
