import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CrowdError } from '../sdk/core/errors.ts'

/** Files that only the owner may read. */

/** null where the file does not exist. */
export async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    if (isMissing(cause)) return null
    throw new CrowdError('storage-failed', `can't read ${path}`, { cause })
  }
}

/** Whole or not at all: written beside and renamed. @throws CrowdError storage-failed */
export async function writePrivate(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}.new`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(draft, text, { mode: 0o600 })
    await rename(draft, path)
  } catch (cause) {
    throw new CrowdError('storage-failed', `can't write ${path}: check --data`, { cause })
  }
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
}
