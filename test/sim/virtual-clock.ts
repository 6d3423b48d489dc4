import type { Timers } from '../../sdk/net/timers.ts'

/** A clock that jumps from event to event: hours of a swarm in seconds, the same way each time. */
export type VirtualClock = Timers & {
  /** Tasks that wait. */
  readonly pending: number
  /** Events that ran so far. */
  readonly events: number
  /**
   * Runs events in the order of their time, then of their making, until `done` says so, `untilMs` is reached or
   * nothing waits. After each event every promise that can settle does. True when `done` ended it.
   */
  run(untilMs: number, done?: () => boolean): Promise<boolean>
}

type Entry = { readonly dueMs: number; readonly order: number; task: (() => void) | null }

export function createVirtualClock(startMs = 1_000): VirtualClock {
  const heap: Entry[] = []
  let nowMs = startMs
  let made = 0
  let ran = 0
  let pending = 0

  return {
    now: () => nowMs,
    after(delayMs, task) {
      const entry: Entry = { dueMs: nowMs + Math.max(0, delayMs), order: made, task }
      made += 1
      pending += 1
      push(heap, entry)
      return () => {
        if (entry.task === null) return
        entry.task = null
        pending -= 1
      }
    },
    async run(untilMs, done = () => false) {
      await settle()
      while (!done()) {
        const next = heap[0]
        if (next === undefined || next.dueMs > untilMs) {
          nowMs = Math.max(nowMs, Math.min(untilMs, Number.MAX_SAFE_INTEGER))
          return false
        }
        pop(heap)
        const { task } = next
        if (task === null) continue
        next.task = null
        pending -= 1
        ran += 1
        nowMs = next.dueMs
        task()
        await settle()
      }
      return true
    },
    get pending() {
      return pending
    },
    get events() {
      return ran
    },
  }
}

/**
 * One turn of Node's event loop. The queue of promise jobs is empty before the loop takes its next callback, jobs that
 * jobs made included; so it is enough as long as nothing in the swarm waits for a real timer or for I/O.
 */
function settle(): Promise<void> {
  return new Promise((done) => setImmediate(done))
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order)
}

function push(heap: Entry[], entry: Entry): void {
  let slot = heap.length
  heap.push(entry)
  while (slot > 0) {
    const above = (slot - 1) >> 1
    const parent = heap[above]
    if (parent === undefined || isBefore(parent, entry)) break
    heap[slot] = parent
    slot = above
  }
  heap[slot] = entry
}

function pop(heap: Entry[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let slot = 0
  for (;;) {
    let below = 2 * slot + 1
    let child = heap[below]
    if (child === undefined) break
    const right = heap[below + 1]
    if (right !== undefined && isBefore(right, child)) {
      below += 1
      child = right
    }
    if (isBefore(last, child)) break
    heap[slot] = child
    slot = below
  }
  heap[slot] = last
}
