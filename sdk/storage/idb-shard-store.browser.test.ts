import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { describeShardStoreContract } from '../../test/contracts/shard-store.contract.ts'
import type { Piece } from '../core/model/manifest.ts'
import { fetchPieces } from './download.ts'
import { hashBytes } from './hash.ts'
import {
  createIdbShardStore,
  openShardStore,
  requestPersistence,
} from './idb-shard-store.browser.ts'
import type { ShardStore } from './shard-store.ts'

const names = new Map<ShardStore, string>()
let count = 0

function make(): ShardStore {
  const databaseName = `test-shards-${Date.now()}-${count++}`
  const store = createIdbShardStore({ databaseName })
  names.set(store, databaseName)
  return store
}

const nameOf = (store: ShardStore): string => names.get(store) ?? ''

/** The raw records, past the store. */
async function records(store: ShardStore): Promise<IDBObjectStore> {
  const database = await new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(nameOf(store))
    request.onsuccess = () => {
      resolve(request.result)
    }
    request.onerror = () => {
      reject(new Error('no database'))
    }
  })
  return database.transaction('pieces', 'readwrite').objectStore('pieces')
}

function done(request: IDBRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => {
      resolve(request.result)
    }
    request.onerror = () => {
      reject(new Error('failed'))
    }
  })
}

afterEach(() => {
  vi.restoreAllMocks()
})

afterAll(() => {
  for (const name of names.values()) indexedDB.deleteDatabase(name)
})

describeShardStoreContract('IndexedDB', {
  make: () => Promise.resolve(make()),
  reopen: (store) => Promise.resolve(createIdbShardStore({ databaseName: nameOf(store) })),
  corrupt: async (store, hash) => {
    const raw = await records(store)
    const bytes = new Uint8Array(1000)
    await done(raw.put(bytes, [hash, bytes.byteLength]))
  },
})

async function onePiece(): Promise<{ piece: Piece; bytes: Uint8Array }> {
  const bytes = Uint8Array.from({ length: 100 }, (_, i) => i)
  return { piece: { sha256: await hashBytes(bytes), bytes: 100 }, bytes }
}

describe('createIdbShardStore', () => {
  it('passes over records that are not its own', async () => {
    const store = make()
    const { piece, bytes } = await onePiece()
    await store.write(piece.sha256, bytes)
    for (const key of ['else', ['x', 3], ['x', 'y'], [piece.sha256], [3, 3], 7]) {
      await done((await records(store)).put('something', key))
    }
    expect(await store.list()).toEqual([piece.sha256])
    expect((await store.usage()).usedBytes).toBe(100)
  })

  it('reports what the browser leaves free', async () => {
    const estimate = () => Promise.resolve({ quota: 1000, usage: 400 })
    const store = createIdbShardStore({ databaseName: nameOf(make()), estimate })
    expect(await store.usage()).toMatchObject({ freeBytes: 600 })
    const unknown = createIdbShardStore({ estimate: () => Promise.resolve({}) })
    expect(await unknown.usage()).toMatchObject({ freeBytes: null })
  })

  it.each<[string, () => Promise<StorageEstimate>]>([
    ['fails', () => Promise.reject(new TypeError('not allowed'))],
    [
      'throws',
      () => {
        throw new TypeError('not allowed')
      },
    ],
    ['never ends', () => new Promise(() => undefined)],
  ])(
    'keeps its pieces when the estimate %s, and says that the space is unknown',
    async (_, estimate) => {
      const reasons: string[] = []
      const store = await openShardStore({
        databaseName: nameOf(make()),
        estimate,
        limitMs: 500,
        onFallback: (reason) => reasons.push(reason),
      })
      const { piece, bytes } = await onePiece()
      await store.write(piece.sha256, bytes)
      expect(await store.usage()).toEqual({ usedBytes: 100, freeBytes: null, persistent: true })
      expect(await store.read(piece.sha256)).toEqual(bytes)
      expect(reasons).toEqual([])
    },
  )

  it('lets a download fail before its first request when space is short', async () => {
    const estimate = () => Promise.resolve({ quota: 50, usage: 0 })
    const store = createIdbShardStore({ databaseName: nameOf(make()), estimate })
    const { piece } = await onePiece()
    const fetchNothing = vi.fn()
    await expect(
      fetchPieces({
        pieces: [piece],
        store,
        sources: [{ name: 'host', urlOf: () => '/x' }],
        fetch: fetchNothing,
      }),
    ).rejects.toMatchObject({ code: 'storage-full' })
    expect(fetchNothing).not.toHaveBeenCalled()
  })

  it('says storage-full when the quota is met while writing', async () => {
    const store = make()
    const { piece, bytes } = await onePiece()
    vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
      throw new DOMException('over', 'QuotaExceededError')
    })
    await expect(store.write(piece.sha256, bytes)).rejects.toMatchObject({ code: 'storage-full' })
    vi.restoreAllMocks()
    expect(await store.has(piece.sha256)).toBe(false)
  })

  it.each(['has', 'read', 'write', 'delete', 'list', 'usage'] as const)(
    'gives up on %s when it never ends',
    async (method) => {
      vi.spyOn(indexedDB, 'open').mockImplementation(
        // A request that no event ever comes from, as after a broken upgrade.
        () => ({}) as IDBOpenDBRequest,
      )
      const { piece, bytes } = await onePiece()
      const store = createIdbShardStore({ databaseName: 'never', limitMs: 50 })
      await expect(store[method](piece.sha256, bytes)).rejects.toMatchObject({
        code: 'storage-failed',
      })
    },
  )
})

describe('requestPersistence', () => {
  it('passes on what the browser decides', async () => {
    const persist = vi.spyOn(navigator.storage, 'persist')
    persist.mockResolvedValueOnce(true).mockResolvedValueOnce(false)
    expect(await requestPersistence()).toBe(true)
    expect(await requestPersistence()).toBe(false)
  })

  it('takes a failure and an open question for a no', async () => {
    const persist = vi.spyOn(navigator.storage, 'persist')
    persist.mockRejectedValueOnce(new TypeError('not allowed'))
    expect(await requestPersistence()).toBe(false)
    persist.mockReturnValueOnce(new Promise(() => undefined))
    expect(await requestPersistence(50)).toBe(false)
  })
})

describe('openShardStore', () => {
  it('is persistent where storage works, and leaves no trace of the try', async () => {
    const databaseName = nameOf(make())
    const store = await openShardStore({ databaseName })
    expect(await store.list()).toEqual([])
    expect(await store.usage()).toMatchObject({ persistent: true })
  })

  it('falls back to memory where storage is blocked, and says so', async () => {
    vi.spyOn(indexedDB, 'open').mockImplementation(() => {
      throw new DOMException('blocked', 'SecurityError')
    })
    const reasons: string[] = []
    const store = await openShardStore({ onFallback: (reason) => reasons.push(reason) })
    const { piece, bytes } = await onePiece()
    await store.write(piece.sha256, bytes)
    expect(await store.read(piece.sha256)).toEqual(bytes)
    expect(await store.usage()).toMatchObject({ persistent: false, usedBytes: 100 })
    expect(reasons).toHaveLength(1)
  })
})
