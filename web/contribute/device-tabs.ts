/** Contributing tabs of one browser: each holds a lock of its own, which the browser frees when a tab is gone. */
const PREFIX = 'crowdinfer-contributes/'
const NEWS = 'crowdinfer-contributes'

/** The tabs of one device share what it lends. */
export interface DeviceTabs {
  /** This tab's name among them, another one after each load of the page. */
  readonly id: string
  /** The other tabs of this browser that contribute to this host. */
  others(): Promise<readonly string[]>
  /** This tab contributes, until release() or until it is gone. */
  take(): void
  release(): void
  /** Called when tabs may have come or gone, while this one contributes. */
  onChange(handler: () => void): void
}

/** @param locks undefined in an insecure context: then every tab counts as the only one */
export function createDeviceTabs(locks: LockManager | undefined): DeviceTabs {
  const id = crypto.getRandomValues(new Uint32Array(2)).join('-')
  const handlers: (() => void)[] = []
  const watched = new Set<string>()
  let taken: AbortController | null = null

  async function others(): Promise<readonly string[]> {
    if (locks === undefined) return []
    const { held = [] } = await locks.query()
    return held.flatMap(({ name = '', mode }) => {
      // Shared ones are of those that wait for the end of a tab.
      const other = name.startsWith(PREFIX) && mode === 'exclusive' ? name.slice(PREFIX.length) : id
      return other === id ? [] : [other]
    })
  }

  function changed(): void {
    for (const handler of handlers) handler()
    if (taken !== null) void watch(taken.signal)
  }

  /** A lock that is to be had says that its tab is gone. */
  async function watch(signal: AbortSignal): Promise<void> {
    for (const other of await others()) {
      if (watched.has(other) || signal.aborted) continue
      watched.add(other)
      locks
        ?.request(PREFIX + other, { mode: 'shared', signal }, () => undefined)
        .then(
          () => {
            watched.delete(other)
            changed()
          },
          // Released here: nobody wants to know any more.
          () => watched.delete(other),
        )
    }
  }

  return {
    id,
    others,
    take() {
      if (locks === undefined || taken !== null) return
      const { signal } = (taken = new AbortController())
      const news = new BroadcastChannel(NEWS)
      news.onmessage = () => changed()
      const kept = new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          news.close()
          resolve()
        })
      })
      void locks.request(PREFIX + id, () => {
        if (!signal.aborted) {
          news.postMessage('come')
          changed()
        }
        return kept
      })
    },
    release() {
      taken?.abort()
      taken = null
    },
    onChange: (handler) => void handlers.push(handler),
  }
}
