/** A few strings that survive a reload; where the browser blocks storage they live as long as the page. */
export interface SafeStorage {
  get(key: string): string | null
  set(key: string, value: string): void
  remove(key: string): void
}

/** @param open gives the browser's storage; may throw where cookies are blocked. */
export function createSafeStorage(open: () => Storage): SafeStorage {
  const memory = new Map<string, string>()
  const attempt = <T>(work: (storage: Storage) => T, otherwise: T): T => {
    try {
      return work(open())
    } catch {
      // Blocked or full: the memory copy answers instead.
      return otherwise
    }
  }
  return {
    get: (key) => attempt((storage) => storage.getItem(key), null) ?? memory.get(key) ?? null,
    set(key, value) {
      memory.set(key, value)
      attempt((storage) => storage.setItem(key, value), undefined)
    },
    remove(key) {
      memory.delete(key)
      attempt((storage) => storage.removeItem(key), undefined)
    },
  }
}
