import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { PieceHash } from '../core/ids.ts'
import { STORAGE_CALL_MS } from '../core/limits.ts'
import { hashBytes, parsePieceHash } from './hash.ts'
import { requireHash } from './memory-shard-store.ts'
import type { ShardStore } from './shard-store.ts'
import { storageError, withTimeLimit } from './time-limit.ts'

const PIECE_NAME = /^[0-9a-f]{64}$/
const PARTIAL_SUFFIX = '.partial'

/**
 * Pieces as files named by their hash in `directory`. A piece is written beside its place and renamed, so a
 * file with a hash for a name is complete; left-overs of a crash are removed at the first write.
 */
export function createFsShardStore(directory: string): ShardStore {
  let prepared: Promise<void> | null = null

  async function call<T>(what: string, action: () => Promise<T>): Promise<T> {
    try {
      const limit = { limitMs: STORAGE_CALL_MS, what, code: 'storage-failed' } as const
      return await withTimeLimit(action(), limit)
    } catch (thrown) {
      throw storageError(thrown, what)
    }
  }

  const pathOf = (hash: PieceHash): string => join(directory, parsePieceHash(hash))
  const remove = (hash: PieceHash): Promise<void> =>
    call('deleting a piece', () => rm(pathOf(hash), { force: true }))

  async function prepare(): Promise<void> {
    await mkdir(directory, { recursive: true })
    const names = await readdir(directory)
    const partial = names.filter((name) => name.endsWith(PARTIAL_SUFFIX))
    await Promise.all(partial.map((name) => rm(join(directory, name), { force: true })))
  }

  async function writeFile(hash: PieceHash, bytes: Uint8Array): Promise<void> {
    prepared ??= prepare().catch((thrown: unknown) => {
      prepared = null
      throw thrown
    })
    await prepared
    const partial = join(directory, `${hash}.${randomUUID()}${PARTIAL_SUFFIX}`)
    try {
      const file = await open(partial, 'wx')
      try {
        await file.writeFile(bytes)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(partial, pathOf(hash))
    } catch (thrown) {
      await rm(partial, { force: true })
      throw thrown
    }
  }

  const names = (): Promise<PieceHash[]> =>
    call('listing pieces', async () => {
      const found = await orIfMissing(readdir(directory), [])
      return found.filter((name) => PIECE_NAME.test(name)).map(parsePieceHash)
    })

  return {
    has: (hash) =>
      call(
        'looking for a piece',
        async () => (await orIfMissing(stat(pathOf(hash)), null)) !== null,
      ),
    async read(hash) {
      const bytes = await call('reading a piece', () => orIfMissing(readFile(pathOf(hash)), null))
      if (bytes === null) return null
      // Small files come as views of Node's shared pool; the bytes may be given away, so they're copied.
      const own = new Uint8Array(bytes)
      if ((await hashBytes(own)) === hash) return own
      await remove(hash)
      return null
    },
    async write(hash, bytes) {
      const own = bytes.slice()
      await requireHash(hash, own)
      await call('storing a piece', () => writeFile(hash, own))
    },
    delete: remove,
    list: names,
    async usage() {
      const files = await names()
      return call('asking for free space', async () => {
        const sizes = await Promise.all(files.map((hash) => orIfMissing(stat(pathOf(hash)), null)))
        const usedBytes = sizes.reduce((sum, entry) => sum + (entry?.size ?? 0), 0)
        const disk = await orIfMissing(statfs(directory), null)
        const freeBytes = disk === null ? null : disk.bavail * disk.bsize
        return { usedBytes, freeBytes, persistent: true }
      })
    },
  }
}

async function orIfMissing<T, U>(promise: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await promise
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return otherwise
    throw thrown
  }
}
