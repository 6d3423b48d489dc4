import { toCrowdError } from '../core/errors.ts'
import { createMemoryShardStore } from './memory-shard-store.ts'
import type { ShardStore } from './shard-store.ts'

/**
 * A store that goes on in memory once the real one fails (not when it is full): its pieces then go with the
 * tab, which `usage().persistent` tells. `onFallback` hears of the first failure.
 */
export function createFallbackShardStore(
  primary: ShardStore,
  onFallback?: (reason: string) => void,
): ShardStore {
  const memory = createMemoryShardStore()
  let failed = false

  /** The primary's answer, or `otherwise` once it failed. @throws CrowdError what is no failed storage */
  async function attempt<T>(
    action: (store: ShardStore) => Promise<T>,
    otherwise: () => Promise<T>,
  ) {
    if (failed) return otherwise()
    try {
      return await action(primary)
    } catch (thrown) {
      const error = toCrowdError(thrown, 'storage-failed')
      if (error.code !== 'storage-failed') throw error
      failed = true
      onFallback?.(error.message)
      return otherwise()
    }
  }

  return {
    has: (hash) =>
      attempt(
        (store) => store.has(hash),
        () => memory.has(hash),
      ),
    read: (hash) =>
      attempt(
        (store) => store.read(hash),
        () => memory.read(hash),
      ),
    write(hash, bytes) {
      // Its own bytes, since the second try begins after the caller may have gone on.
      const own = bytes.slice()
      return attempt(
        (store) => store.write(hash, own),
        () => memory.write(hash, own),
      )
    },
    delete: (hash) =>
      attempt(
        (store) => store.delete(hash),
        () => memory.delete(hash),
      ),
    list: () =>
      attempt(
        (store) => store.list(),
        () => memory.list(),
      ),
    usage: () =>
      attempt(
        (store) => store.usage(),
        () => memory.usage(),
      ),
  }
}
