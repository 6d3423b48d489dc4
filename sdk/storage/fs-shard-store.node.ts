import { mkdir, readdir, readFile, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { PieceHash } from '../core/ids.ts'
import { STORAGE_CALL_MS } from '../core/limits.ts'
import { removeLeftovers, writeAtomically } from './atomic-file.node.ts'
import { hashBytes, isPieceHash } from './hash.ts'
import { requireHash } from './memory-shard-store.ts'
import type { ShardStore } from './shard-store.ts'
import { storageError, withTimeLimit } from './time-limit.ts'

export type FsShardStoreOptions = {
  readonly limitMs?: number
  /** Bytes that this user may still write to the file system of a directory. */
  readonly freeBytes?: (directory: string) => Promise<number>
}

/**
 * Pieces as files named by their hash. Any number of processes may share the directory: a piece appears whole
 * by a rename, two writers write the same bytes, and readers check the hash. Makes the directory.
 * @throws CrowdError storage-failed where the directory can't be written
 */
export async function openFsShardStore(
  directory: string,
  options: FsShardStoreOptions = {},
): Promise<ShardStore> {
  const { limitMs = STORAGE_CALL_MS, freeBytes = platformFree } = options

  async function call<T>(what: string, action: () => Promise<T>): Promise<T> {
    try {
      return await withTimeLimit(action(), { limitMs, what, code: 'storage-failed' })
    } catch (thrown) {
      throw storageError(thrown, `${what} in ${directory}`)
    }
  }

  const pathOf = (hash: PieceHash): string => join(directory, hash)
  const remove = (hash: PieceHash): Promise<void> =>
    call('deleting a piece', () => rm(pathOf(hash), { force: true }))

  await call('making the folder of pieces', async () => {
    await mkdir(directory, { recursive: true })
    // Tells a folder that can't be written now, not after the first download.
    await writeAtomically(directory, 'README', 'Pieces of models, named by their SHA-256.\n')
    await removeLeftovers(directory)
  })

  const list = (): Promise<PieceHash[]> =>
    call('listing pieces', async () => (await readdir(directory)).filter(isPieceHash))

  return {
    has: (hash) => call('looking for a piece', async () => (await sizeOf(pathOf(hash))) !== null),
    async read(hash) {
      const found = await call('reading a piece', () => readOrNull(pathOf(hash)))
      if (found === null) return null
      if ((await hashBytes(found)) === hash) return found
      await remove(hash)
      return null
    },
    async write(hash, bytes) {
      const own = bytes.slice()
      await requireHash(hash, own)
      await call('storing a piece', () => writeAtomically(directory, hash, own))
    },
    delete: remove,
    list,
    async usage() {
      const sizes = await Promise.all((await list()).map((hash) => sizeOf(pathOf(hash))))
      return {
        usedBytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0),
        freeBytes: await call('asking for free space', () => freeBytes(directory)).catch(
          () => null,
        ),
        persistent: true,
      }
    },
  }
}

async function platformFree(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}

/** Bytes of a file, or null where there is none. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size
  } catch (thrown) {
    if (isMissing(thrown)) return null
    throw thrown
  }
}

/** A file's bytes in a buffer of their own, or null where there is none. */
async function readOrNull(path: string): Promise<Uint8Array | null> {
  try {
    const bytes = await readFile(path)
    const isOwn = bytes.byteLength === bytes.buffer.byteLength
    return isOwn ? new Uint8Array(bytes.buffer) : Uint8Array.from(bytes)
  } catch (thrown) {
    if (isMissing(thrown)) return null
    throw thrown
  }
}

function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT'
}
