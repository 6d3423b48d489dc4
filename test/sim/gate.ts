import type { Timers } from '../../sdk/net/timers.ts'

/**
 * The life of a page: everything that runs on a device goes through here. Frozen, it waits and runs late, in
 * order; dead, it never runs.
 */
export type Gate = Timers & {
  /** Runs now, or later, or never. */
  enter(task: () => void): void
  freeze(): void
  thaw(): void
  kill(): void
  readonly isFrozen: boolean
  readonly isDead: boolean
  /** Timers of this device that wait. */
  readonly pending: number
}

export function createGate(clock: Timers): Gate {
  const timers = new Set<() => void>()
  const held: (() => void)[] = []
  let isFrozen = false
  let isDead = false
  let isCatchingUp = false

  function enter(task: () => void): void {
    if (isDead) return
    if (isFrozen || isCatchingUp) held.push(task)
    else task()
  }

  /** What came meanwhile, one after the other: as one task each, with its promises between them. */
  function catchUp(): void {
    const task = isDead || isFrozen ? undefined : held.shift()
    isCatchingUp = task !== undefined
    if (task === undefined) return
    clock.after(0, catchUp)
    task()
  }

  return {
    now: clock.now,
    after(delayMs, task) {
      if (isDead) return () => undefined
      let isDone = false
      const cancelTimer = clock.after(delayMs, () =>
        enter(() => {
          if (isDone) return
          cancel()
          task()
        }),
      )
      const cancel = (): void => {
        isDone = true
        timers.delete(cancel)
        cancelTimer()
      }
      timers.add(cancel)
      return cancel
    },
    enter,
    freeze() {
      isFrozen = true
    },
    thaw() {
      if (!isFrozen) return
      isFrozen = false
      if (isDead || isCatchingUp) return
      isCatchingUp = true
      clock.after(0, catchUp)
    },
    kill() {
      isDead = true
      held.length = 0
      for (const cancel of [...timers]) cancel()
    },
    get isFrozen() {
      return isFrozen
    },
    get isDead() {
      return isDead
    },
    get pending() {
      return timers.size
    },
  }
}
