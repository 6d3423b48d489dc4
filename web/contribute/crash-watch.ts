import type { WorkerSnapshot } from '../../sdk/worker/worker-snapshot.ts'
import {
  begun,
  CRASHES_MAX,
  ended,
  judge,
  survived,
  SURVIVED_MS,
  type CrashTrail,
} from './crash-trail.ts'
import { describeHolding } from './phase-text.ts'

/** Leaves the crumb of one tab while it does what browsers kill tabs for, and reads those of tabs before it. */
export type CrashWatch = {
  /** What a tab of this device did when the browser killed it; empty when none was killed since the last look. */
  look(alive: readonly string[]): string
  /** Too many were killed: nothing is to begin by itself. */
  readonly isStopped: boolean
  /** What the worker does now. */
  follow(snapshot: WorkerSnapshot): void
  /** A browser that clears up its tabs out of sight may kill this one: that is no crash. */
  setHidden(hidden: boolean): void
  /** Nothing dangerous is done any more. */
  rest(): void
}

export function createCrashWatch(deps: {
  readonly tab: string
  readonly memory: { trail(): CrashTrail; setTrail(trail: CrashTrail): void }
  now(): number
}): CrashWatch {
  const { tab, memory } = deps
  let crumb = ''
  let hidden = false
  let servingSince: number | null = null
  let isSafe = false

  /** Storage is written when something changes, not at every step. */
  function leave(next: string): void {
    if (next === crumb) return
    crumb = next
    memory.setTrail(next === '' ? ended(memory.trail(), tab) : begun(memory.trail(), tab, next))
  }

  return {
    look(alive) {
      const { trail, killed } = judge(memory.trail(), alive)
      if (killed !== '') memory.setTrail(trail)
      return killed
    },
    get isStopped() {
      return memory.trail().crashes >= CRASHES_MAX
    },
    follow(snapshot) {
      const { phase } = snapshot
      if (phase !== 'serving' || hidden) servingSince = null
      else servingSince ??= deps.now()
      if (phase !== 'serving' && phase !== 'connecting') isSafe = false
      else if (servingSince !== null && deps.now() - servingSince > SURVIVED_MS && !isSafe) {
        isSafe = true
        crumb = ''
        memory.setTrail(survived(memory.trail(), tab))
      }
      leave(hidden || isSafe ? '' : doingOf(snapshot))
    },
    setHidden(next) {
      hidden = next
      if (hidden) leave('')
    },
    rest() {
      servingSince = null
      isSafe = false
      leave('')
    },
  }
}

/** What takes so much memory that a browser may end it, for people; empty for all else. */
function doingOf(snapshot: WorkerSnapshot): string {
  if (snapshot.phase === 'testing') return 'testing what it can compute'
  if (snapshot.phase === 'loading') return `loading ${describeHolding(snapshot)}`
  return snapshot.phase === 'serving' ? `serving ${describeHolding(snapshot)}` : ''
}
