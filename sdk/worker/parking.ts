import type { Sessions } from './sessions.ts'

/** How long caches are kept for a host that was lost and found again. */
const PARK_MS = 60_000

/** Frees what the host does not open again after it was found. */
export function createParking(
  sessions: Pick<Sessions, 'dropParked'>,
  later: (ms: number, task: () => void) => () => void,
): { begin(): void; stop(): void } {
  let stop: () => void = () => undefined
  return {
    begin() {
      stop()
      stop = later(PARK_MS, () => void sessions.dropParked())
    },
    stop: () => stop(),
  }
}
