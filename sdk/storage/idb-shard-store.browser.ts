import { createStore, promisifyRequest } from 'idb-keyval'
import type { PieceHash } from '../core/ids.ts'
import { STORAGE_CALL_MS } from '../core/limits.ts'
import { createFallbackShardStore } from './fallback-shard-store.ts'
import { hashBytes, isPieceHash } from './hash.ts'
import { requireHash } from './memory-shard-store.ts'
import type { ShardStore } from './shard-store.ts'
import { storageError, withTimeLimit } from './time-limit.ts'

export type IdbShardStoreOptions = {
  readonly databaseName?: string
  /** navigator.storage.estimate by default. */
  readonly estimate?: () => Promise<StorageEstimate>
  readonly limitMs?: number
}

/**
 * Pieces in IndexedDB. One record per piece under the key [hash, bytes], so that what is held and how much
 * is read off the keys alone; a record is put in one transaction and only after its hash was checked.
 */
export function createIdbShardStore(options: IdbShardStoreOptions = {}): ShardStore {
  const { databaseName = 'crowdinfer-shards', limitMs = STORAGE_CALL_MS } = options
  const estimate = options.estimate ?? platformEstimate
  const useStore = createStore(databaseName, 'pieces')

  async function call<T>(
    what: string,
    mode: IDBTransactionMode,
    action: Parameters<typeof useStore<T>>[1],
  ): Promise<T> {
    try {
      const limit = { limitMs, what, code: 'storage-failed' } as const
      return await withTimeLimit(useStore(mode, action), limit)
    } catch (thrown) {
      throw storageError(thrown, what)
    }
  }

  const keys = (): Promise<PieceKey[]> =>
    call('listing pieces', 'readonly', async (store) => {
      const found = await promisifyRequest(store.getAllKeys())
      return found.flatMap((key) => parseKey(key) ?? [])
    })

  const remove = (hash: PieceHash): Promise<void> =>
    call('deleting a piece', 'readwrite', (store) => {
      store.delete(rangeOf(hash))
      return promisifyRequest(store.transaction)
    })

  /** An estimate that fails or hangs says nothing about the pieces, which are read all the same. */
  async function freeBytes(): Promise<number | null> {
    const limit = { limitMs, what: 'asking for free space', code: 'storage-failed' } as const
    const asked = withTimeLimit(Promise.resolve().then(estimate), limit)
    const { quota, usage = 0 } = await asked.catch((): StorageEstimate => ({}))
    return quota === undefined ? null : Math.max(0, quota - usage)
  }

  return {
    has: async (hash) =>
      (await call('looking for a piece', 'readonly', (store) =>
        promisifyRequest(store.count(rangeOf(hash))),
      )) > 0,
    async read(hash) {
      const value = await call<unknown>('reading a piece', 'readonly', (store) =>
        promisifyRequest<unknown>(store.get(rangeOf(hash))),
      )
      if (value === undefined) return null
      if (value instanceof Uint8Array && (await hashBytes(value)) === hash) return value
      await remove(hash)
      return null
    },
    async write(hash, bytes) {
      // A view would store the whole buffer below it.
      const own = bytes.slice()
      await requireHash(hash, own)
      await call('storing a piece', 'readwrite', (store) => {
        store.delete(rangeOf(hash))
        store.put(own, [hash, own.byteLength])
        return promisifyRequest(store.transaction)
      })
    },
    delete: remove,
    list: async () => (await keys()).map(({ hash }) => hash),
    async usage() {
      const usedBytes = (await keys()).reduce((sum, { bytes }) => sum + bytes, 0)
      return { usedBytes, freeBytes: await freeBytes(), persistent: true }
    },
  }
}

type PieceKey = { readonly hash: PieceHash; readonly bytes: number }

/** Every record of a hash, whatever its size: arrays sort after numbers. */
function rangeOf(hash: PieceHash): IDBKeyRange {
  return IDBKeyRange.bound([hash], [hash, []])
}

/** What isn't ours is passed over. */
function parseKey(key: IDBValidKey): PieceKey | null {
  if (!Array.isArray(key)) return null
  const [hash, bytes] = key
  if (typeof hash !== 'string' || typeof bytes !== 'number' || !isPieceHash(hash)) return null
  return { hash, bytes }
}

function platformEstimate(): Promise<StorageEstimate> {
  // Typed as always there, but absent where the page is not secure.
  const storage = navigator.storage as StorageManager | undefined
  return storage?.estimate() ?? Promise.resolve({})
}

export type OpenShardStoreOptions = IdbShardStoreOptions & {
  /** Why the pieces are only kept in memory, in words for people. */
  readonly onFallback?: (reason: string) => void
}

/**
 * The shard store of a tab: IndexedDB, or memory where storage is blocked (`usage().persistent` is false
 * then). Never rejects; tries storage by writing, since private windows fail only there.
 */
export async function openShardStore(options: OpenShardStoreOptions = {}): Promise<ShardStore> {
  const { onFallback, ...idbOptions } = options
  const store = createFallbackShardStore(createIdbShardStore(idbOptions), onFallback)
  const probe = new TextEncoder().encode('crowdinfer')
  const hash = await hashBytes(probe)
  try {
    await store.write(hash, probe)
    await store.delete(hash)
  } catch {
    // Full: pieces that are there can still be read, and the first download says what is missing.
  }
  return store
}

/**
 * Asks the browser not to evict the pieces when space gets tight; call from a click. False where it
 * refuses, can't, or leaves the question open for `limitMs`.
 */
export async function requestPersistence(limitMs = STORAGE_CALL_MS): Promise<boolean> {
  // Typed as always there, but absent where the page is not secure.
  const storage = navigator.storage as StorageManager | undefined
  if (storage === undefined) return false
  const limit = { limitMs, what: 'asking for lasting storage', code: 'storage-failed' } as const
  return withTimeLimit(storage.persist(), limit).catch(() => false)
}
