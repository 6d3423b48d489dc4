import { join } from 'node:path'
import type { Manifest } from '../core/model/manifest.ts'
import { importModel } from './import-model.node.ts'
import { packageRoot } from './package-root.node.ts'
import { resolveModel } from './resolve-model.node.ts'

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

/**
 * Cuts a model, given by built-in name or by directory, into blocks under the data folder, unless that was
 * done before. `onFound` hears of it before the work begins.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported
 */
export async function storeModel(
  nameOrPath: string,
  dataDir: string,
  onFound: (model: Pick<StoredModel, 'name' | 'storeDir'>) => void = () => undefined,
): Promise<StoredModel> {
  const { name, directory } = await resolveModel(nameOrPath, builtinDirectory())
  const storeDir = join(dataDir, 'models', name)
  onFound({ name, storeDir })
  return { name, storeDir, manifest: await importModel(directory, storeDir) }
}
