import { randomUUID } from 'node:crypto'
import { readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const TEMPORARY_PREFIX = '.tmp-'
/** A leftover of a crash, not of a write that is still running. */
const TEMPORARY_MAX_AGE_MS = 60 * 60 * 1000

/** Writes a file so that it's either the old one or wholly the new one, whoever else writes it too. */
export async function writeAtomically(
  directory: string,
  name: string,
  bytes: Uint8Array | string,
): Promise<void> {
  const temporary = join(directory, `${TEMPORARY_PREFIX}${randomUUID()}`)
  try {
    await writeFile(temporary, bytes)
    await rename(temporary, join(directory, name))
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Deletes what a crash left of writes in a directory. */
export async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    if (name.startsWith(TEMPORARY_PREFIX) && (await isOld(path))) await rm(path, { force: true })
  }
}

async function isOld(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => null)
  return info !== null && Date.now() - info.mtimeMs > TEMPORARY_MAX_AGE_MS
}
