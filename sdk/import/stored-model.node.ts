import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { importModel } from './import-model.node.ts'
import type { ImportProgress } from './import-options.ts'
import type { KnownModel } from './known-model.ts'
import {
  findKnownModel,
  listKnownModels,
  openKnownModel,
  storeDirectory,
} from './model-registry.node.ts'
import { packageRoot } from './package-root.node.ts'
import { builtinModels, resolveModel, type ResolvedModel } from './resolve-model.node.ts'

/** A model that is cut into blocks: `manifest.json` and `pieces/` lie in `storeDir`. */
export type StoredModel = {
  readonly name: string
  readonly storeDir: string
  readonly manifest: Manifest
}

/** Where the built-in models lie, both in the clone and in the built package. */
export function builtinDirectory(): string {
  return join(packageRoot(), 'public', 'models')
}

/** What a name, a path or a hub's id stands for on this machine. */
export type FoundModel = { readonly kind: 'added'; readonly known: KnownModel } | ResolvedModel

/**
 * An added model's name, a built-in name, a path, or the hub id that an added model came from; in this order.
 * @throws CrowdError model-invalid, bad-option where an id came in several forms
 */
export async function findModel(text: string, dataDir: string): Promise<FoundModel | null> {
  const known = await findKnownModel(dataDir, text)
  if (known !== null) return { kind: 'added', known }
  const resolved = await resolveModel(text, builtinDirectory())
  if (resolved !== null) return resolved
  const fromHub = (await listKnownModels(dataDir)).filter(({ origin }) => hasId(origin, text))
  const [first] = fromHub
  if (first === undefined) return null
  if (fromHub.length === 1) return { kind: 'added', known: first }
  const names = fromHub.map(({ name }) => name).join(', ')
  throw new CrowdError('bad-option', `${text} was added as ${names}: give one of these names`)
}

function hasId(origin: KnownModel['origin'], text: string): boolean {
  if (origin.kind !== 'hub') return false
  const { repo, revision, part } = origin
  const at = revision === null ? '' : `@${revision}`
  const which = part === null ? '' : `:${part}`
  return [repo, `${repo}${at}`, `${repo}${at}${which}`, `${repo}${which}`].includes(text)
}

export type StoreModelEvents = {
  /** Before the work begins. */
  readonly found?: (model: Pick<StoredModel, 'name' | 'storeDir'>) => void
  /** Hears of each block that was cut; of none where that was done before. */
  readonly progress?: (progress: ImportProgress) => void
}

/**
 * Opens a model that was added, or cuts one, given by built-in name or by path, into blocks under the data folder,
 * unless that was done before.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported, bad-option
 */
export async function storeModel(
  nameOrPath: string,
  dataDir: string,
  on: StoreModelEvents = {},
): Promise<StoredModel> {
  const found = await findModel(nameOrPath, dataDir)
  if (found === null) throw await notFound(nameOrPath, dataDir)
  if (found.kind === 'added') {
    const { name, storeDir, manifest } = await openKnownModel(dataDir, found.known)
    return { name, storeDir, manifest }
  }
  const { name, path } = found
  const storeDir = await cutDirectory(found, dataDir)
  on.found?.({ name, storeDir })
  const options = on.progress === undefined ? {} : { onProgress: on.progress }
  return { name, storeDir, manifest: await importModel(path, storeDir, options) }
}

/** An added model of the same name must not be overwritten: its source may be gone. */
async function cutDirectory({ name, path }: ResolvedModel, dataDir: string): Promise<string> {
  const directory = storeDirectory(dataDir, name)
  if ((await findKnownModel(dataDir, name)) === null) return directory
  const suffix = createHash('sha256').update(path).digest('hex').slice(0, 8)
  return `${directory}.path-${suffix}`
}

async function notFound(text: string, dataDir: string): Promise<CrowdError> {
  const builtin = await builtinModels(builtinDirectory())
  const added = (await listKnownModels(dataDir)).map(({ name }) => name)
  const names = [
    `Built in: ${builtin.length > 0 ? builtin.join(', ') : 'none'}.`,
    ...(added.length > 0 ? [`Added: ${added.join(', ')}.`] : []),
    ...(/^[\w.-]+\/[\w.-]+/.test(text) ? [`From a hub: crowdinfer model add ${text}.`] : []),
  ]
  const message = `There is no model, directory or model file "${text}". ${names.join(' ')}`
  return new CrowdError('model-not-found', message)
}
