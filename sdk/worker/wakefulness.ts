import type { ClientMessage } from '../protocol/client-to-server.ts'
import { createBeat } from './beat.ts'
import type { Sessions } from './sessions.ts'

export type Wakefulness = {
  /** Once a second while anything runs here: a sign of life, and a look at the clock. */
  tick(): void
  /** Nothing will run here for a while: says so, and is quiet until wake(). */
  sleep(): void
  wake(): void
}

/** Between two ticks: more than the throttling of a hidden tab, less than what the host forgets anybody for. */
const JUMP_MS = 5_000

/**
 * Beats while the device is awake. After a jump of the clock, when the lid was shut for instance, the host may have
 * missed anything or given this device up: it hears all again.
 */
export function createWakefulness(deps: {
  readonly sessions: Pick<Sessions, 'progress'>
  tell(message: ClientMessage): void
  /** What this device gives and whom it is linked with, again. */
  announce(): void
  /** A clock that goes on while the device sleeps, ms. */
  wallNow(): number
}): Wakefulness {
  let asleep = false
  let tickedAt = deps.wallNow()
  const beat = createBeat({
    sessions: deps.sessions,
    tell(message) {
      // An answer of the thread that computes may come after the last word.
      if (!asleep) deps.tell(message)
    },
  })

  function wake(): void {
    asleep = false
    tickedAt = deps.wallNow()
    beat()
    deps.announce()
  }

  return {
    tick() {
      const now = deps.wallNow()
      const jumped = now - tickedAt > JUMP_MS
      tickedAt = now
      if (jumped) wake()
      else if (!asleep) beat()
    },
    sleep() {
      asleep = true
      deps.tell({ kind: 'beat', computing: false, sessions: [], asleep: true })
    },
    wake() {
      if (asleep) wake()
    },
  }
}
