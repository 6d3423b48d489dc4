/** One tab of a browser contributes unless its owner wants more: the browser's own locks tell them apart. */
const NAME = 'crowdinfer-contributes'

export interface TabLock {
  /** Whether another tab of this browser contributes to this host. */
  heldElsewhere(): Promise<boolean>
  /** Takes the lock if it's free, and keeps it until release() or until the tab is gone. */
  take(): void
  release(): void
}

/** @param locks undefined in an insecure context: then every tab counts as the first */
export function createTabLock(locks: LockManager | undefined): TabLock {
  let release: (() => void) | null = null
  return {
    async heldElsewhere() {
      if (locks === undefined || release !== null) return false
      const { held = [] } = await locks.query()
      return held.some((lock) => lock.name === NAME)
    },
    take() {
      if (locks === undefined || release !== null) return
      const kept = new Promise<void>((resolve) => (release = resolve))
      void locks.request(NAME, { ifAvailable: true }, (lock) => (lock === null ? undefined : kept))
    },
    release() {
      release?.()
      release = null
    },
  }
}
