import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CrowdError } from '../core/errors.ts'

/** Left free for everything else that runs. */
const RESERVE_BYTES = 256 * 1024 * 1024

/** Bytes that this user may still write where `path` is, or will be. */
export async function freeDiskBytes(path: string): Promise<number> {
  let folder = path
  while ((await stat(folder).catch(() => null)) === null && dirname(folder) !== folder) {
    folder = dirname(folder)
  }
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/**
 * Before anything is fetched: is there room for it?
 * @param needs what takes how many bytes, e.g. `{ 'the download': 3e9 }`
 * @throws CrowdError storage-full, with the numbers
 */
export async function checkDiskSpace(
  folder: string,
  needs: Readonly<Record<string, number>>,
  freeBytes: (folder: string) => Promise<number> = freeDiskBytes,
): Promise<void> {
  const needed = Object.values(needs).reduce((sum, bytes) => sum + bytes, 0)
  const free = await freeBytes(folder)
  if (needed === 0 || free >= needed + RESERVE_BYTES) return
  const parts = Object.entries(needs).map(([what, bytes]) => `${gigabytes(bytes)} for ${what}`)
  throw new CrowdError(
    'storage-full',
    `${folder} needs ${parts.join(' and ')}, and ${gigabytes(RESERVE_BYTES)} are left for the system, but only ${gigabytes(free)} are free.`,
  )
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(bytes < 1e9 ? 2 : 1)} GB`
}
