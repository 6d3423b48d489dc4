import { readdir, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { removeDownload } from '../sdk/add-model.node.ts'
import { CrowdError } from '../sdk/core/errors.ts'
import { findKnownModel, removeStore, storeDirectory } from '../sdk/import/model-registry.node.ts'
import { builtinModels } from '../sdk/import/resolve-model.node.ts'
import { builtinDirectory } from '../sdk/import/stored-model.node.ts'
import type { Ask } from './ask-person.ts'
import { formatBytes } from './model-texts.ts'

/**
 * Deletes an added model and its kept download.
 * @param confirm asked first; null = go ahead
 * @returns bytes that are free now; null when the person said no
 * @throws CrowdError model-not-found, bad-option (built in, or nobody is there to ask), model-invalid
 */
export async function removeModel(
  dataDir: string,
  name: string,
  confirm: Ask | null,
): Promise<number | null> {
  if ((await builtinModels(builtinDirectory())).includes(name)) {
    throw new CrowdError('bad-option', `${name} is built in and can't be removed`)
  }
  const known = await findKnownModel(dataDir, name)
  if (known === null) throw new CrowdError('model-not-found', `no model ${name} was added`)
  const download =
    known.keptSource !== null && isWithin(dataDir, known.keptSource) ? known.keptSource : null
  const bytes =
    (await folderBytes(storeDirectory(dataDir, name))) +
    (download === null ? 0 : await folderBytes(download))
  if (confirm !== null) {
    const answer = await confirm(`Delete ${name} (${formatBytes(bytes)})?`)
    if (answer === null) {
      throw new CrowdError('bad-option', 'nobody is there to ask: say --yes to delete it')
    }
    if (!answer) return null
  }
  await removeStore(dataDir, name)
  if (download !== null) await removeDownload(download)
  return bytes
}

/** An entry that was edited by hand must not delete anything else. */
function isWithin(dataDir: string, path: string): boolean {
  const below = relative(join(dataDir, 'downloads'), resolve(path))
  return (
    below !== '' &&
    !below.startsWith('..') &&
    resolve(dataDir, 'downloads', below) === resolve(path)
  )
}

async function folderBytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const sizes = await Promise.all(
    names.map(async (name) => {
      const info = await stat(join(folder, name)).catch(() => null)
      return info?.isFile() === true ? info.size : 0
    }),
  )
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}
