import type { PieceHash } from '../../sdk/core/ids.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import type { ShardStore } from '../../sdk/storage/shard-store.ts'
import type { FetchPieces } from '../../sdk/worker/stage-holder.ts'

/**
 * A device's pieces. The exact runner doesn't read weights, so a piece is its hash and its length, and nothing is
 * hashed: storage has its own tests.
 */
export type SimStore = ShardStore & { put(hash: PieceHash, bytes: number): void }

export function createSimStore(): SimStore {
  const pieces = new Map<PieceHash, number>()
  return {
    put: (hash, bytes) => void pieces.set(hash, bytes),
    has: (hash) => Promise.resolve(pieces.has(hash)),
    read(hash) {
      const bytes = pieces.get(hash)
      return Promise.resolve(bytes === undefined ? null : new Uint8Array(bytes))
    },
    write(hash, bytes) {
      pieces.set(hash, bytes.length)
      return Promise.resolve()
    },
    delete(hash) {
      pieces.delete(hash)
      return Promise.resolve()
    },
    list: () => Promise.resolve([...pieces.keys()]),
    usage() {
      const usedBytes = [...pieces.values()].reduce((sum, bytes) => sum + bytes, 0)
      return Promise.resolve({ usedBytes, freeBytes: null, persistent: true })
    },
  }
}

/** Fetches at a steady speed. */
export function simFetch(store: SimStore, timers: Timers, bytesPerMs: number): FetchPieces {
  return async (pieces, { signal, onProgress }) => {
    let done = 0
    let fetched = 0
    for (const { sha256, bytes } of pieces) {
      if (!(await store.has(sha256))) {
        await new Promise<void>((arrived) => void timers.after(bytes / bytesPerMs, arrived))
        signal.throwIfAborted()
        store.put(sha256, bytes)
        fetched += bytes
      }
      done += bytes
      onProgress(done, fetched, 0)
    }
  }
}
