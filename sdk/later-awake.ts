/** A page that was frozen finds at most this much of a limit used up at its thaw. */
const SLICE_MS = 5_000

/** Runs `task` after `ms` unless the returned function was called. */
type Later = (ms: number, task: () => void) => () => void

/**
 * The same, but time in which this device slept, or the page was frozen, hardly counts: a limit that passed
 * meanwhile would otherwise be up before the page hears what happened to its connection.
 */
export function laterAwake(later: Later): Later {
  return (ms, task) => {
    let left = ms
    let cancel: () => void
    const wait = (): void => {
      const slice = Math.min(left, SLICE_MS)
      cancel = later(slice, () => {
        left -= slice
        if (left > 0) wait()
        else task()
      })
    }
    wait()
    return () => cancel()
  }
}
