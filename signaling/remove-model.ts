import { relative, resolve } from 'node:path'
import { CrowdError } from '../sdk/core/errors.ts'
import {
  downloadsDirectory,
  folderBytes,
  listDownloads,
  removeDownload,
  type KeptDownload,
} from '../sdk/hub/kept-downloads.node.ts'
import {
  findKnownModel,
  listKnownModels,
  removeStore,
  storeDirectory,
} from '../sdk/import/model-registry.node.ts'
import { builtinModels } from '../sdk/import/resolve-model.node.ts'
import { builtinDirectory } from '../sdk/import/stored-model.node.ts'
import type { Ask } from './ask-person.ts'
import { formatBytes } from '../sdk/terminal/format.ts'
import { isServed } from './serving-marks.ts'

/**
 * Deletes an added model and its kept download, or what was downloaded of a repository and never became a model.
 * @param name of a model, or `org/name` of a download
 * @param confirm asked first; null = go ahead
 * @returns bytes that are free now; null when the person said no
 * @throws CrowdError model-not-found, model-invalid, bad-option (built in, served or being downloaded right now, or nobody
 * is there to ask)
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
  if (known === null) return removeDownloads(dataDir, name, confirm)
  const storeDir = storeDirectory(dataDir, name)
  await refuseServed(storeDir, name)
  const download =
    known.keptSource !== null && isWithin(dataDir, known.keptSource) ? known.keptSource : null
  const bytes =
    (await folderBytes(storeDir)) + (download === null ? 0 : await folderBytes(download))
  if (!(await agrees(confirm, name, bytes))) return null
  // Whoever was asked may have started a host meanwhile.
  await refuseServed(storeDir, name)
  await removeStore(dataDir, name)
  if (download !== null) await removeDownload(download)
  return bytes
}

/** What no model keeps: downloads that stopped, or could not be cut. @throws CrowdError model-invalid */
export async function unfinishedDownloads(dataDir: string): Promise<KeptDownload[]> {
  const kept = (await listKnownModels(dataDir)).map(({ keptSource }) => keptSource)
  const all = await listDownloads(dataDir)
  return all.filter(({ directory }) => !kept.includes(directory))
}

async function removeDownloads(
  dataDir: string,
  name: string,
  confirm: Ask | null,
): Promise<number | null> {
  const found = (await unfinishedDownloads(dataDir)).filter(({ repo }) => repo === name)
  if (found.length === 0) {
    const message = `no model ${name} was added, and there is no unfinished download of that name`
    throw new CrowdError('model-not-found', message)
  }
  const bytes = found.reduce((sum, one) => sum + one.bytes, 0)
  if (!(await agrees(confirm, `the download of ${name}`, bytes))) return null
  for (const { directory } of found) await removeDownload(directory)
  return bytes
}

async function refuseServed(storeDir: string, name: string): Promise<void> {
  if (!(await isServed(storeDir))) return
  const message = `a running host serves ${name}: stop it, or let it serve another model, then remove this one`
  throw new CrowdError('bad-option', message)
}

/** @throws CrowdError bad-option where nobody is there to ask */
async function agrees(confirm: Ask | null, what: string, bytes: number): Promise<boolean> {
  if (confirm === null) return true
  const answer = await confirm(`Delete ${what} (${formatBytes(bytes)})?`)
  if (answer !== null) return answer
  throw new CrowdError('bad-option', 'nobody is there to ask: say --yes to delete it')
}

/** An entry that was edited by hand must not delete anything else. */
function isWithin(dataDir: string, path: string): boolean {
  const root = downloadsDirectory(dataDir)
  const below = relative(root, resolve(path))
  return below !== '' && !below.startsWith('..') && resolve(root, below) === resolve(path)
}
