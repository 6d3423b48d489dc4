import type { Later } from './storage/stall-limit.ts'

/** How often it is looked how much time passed. Browsers wake a hidden page about once a minute. */
const SLICE_MS = 5_000
/** What a frozen page finds used up of a limit at its thaw. */
const SLEPT_MAX_MS = 30_000

/**
 * A `later` for which, of the time in which this device slept or the page was frozen, only a part counts: a limit that
 * passed meanwhile would otherwise be up before the page hears what happened to its connection.
 * @param now ms, of a clock that never goes back
 */
export function laterAwake(later: Later, now: () => number): Later {
  return (ms, task) => {
    let left = ms
    let cancel: () => void
    const wait = (): void => {
      const begun = now()
      const slice = Math.min(left, SLICE_MS)
      cancel = later(slice, () => {
        left -= Math.min(Math.max(slice, now() - begun), SLEPT_MAX_MS)
        if (left > 0) wait()
        else task()
      })
    }
    wait()
    return () => cancel()
  }
}
