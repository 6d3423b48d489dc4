import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import { hashBytes } from './hash.ts'
import type { ShardStore } from './shard-store.ts'

/** Pieces in memory: for private windows, blocked storage and tests. They go with the tab. */
export function createMemoryShardStore(): ShardStore {
  const pieces = new Map<PieceHash, Uint8Array>()
  return {
    has: (hash) => Promise.resolve(pieces.has(hash)),
    async read(hash) {
      const bytes = pieces.get(hash)
      if (bytes === undefined) return null
      // A copy: what is read may be given away to another thread.
      const copy = bytes.slice()
      if ((await hashBytes(copy)) === hash) return copy
      pieces.delete(hash)
      return null
    },
    async write(hash, bytes) {
      const copy = bytes.slice()
      await requireHash(hash, copy)
      pieces.set(hash, copy)
    },
    delete(hash) {
      pieces.delete(hash)
      return Promise.resolve()
    },
    list: () => Promise.resolve([...pieces.keys()]),
    usage() {
      let usedBytes = 0
      for (const { byteLength } of pieces.values()) usedBytes += byteLength
      return Promise.resolve({ usedBytes, freeBytes: null, persistent: false })
    },
  }
}

/** @throws CrowdError piece-corrupt */
export async function requireHash(hash: PieceHash, bytes: Uint8Array): Promise<void> {
  const actual = await hashBytes(bytes)
  if (actual !== hash) {
    throw new CrowdError('piece-corrupt', `a piece has hash ${actual}, expected ${hash}`)
  }
}
