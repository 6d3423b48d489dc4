import { join } from 'node:path'
import { importModel } from '../sdk/import/import-model.node.ts'
import { resolveModel } from '../sdk/import/resolve-model.node.ts'
import type { HostedModel } from './hosted-model.ts'

/**
 * Cuts the model into blocks under the data folder, unless that was done before; `crowdinfer run` uses the
 * same store. @throws CrowdError model-not-found, model-invalid, model-unsupported
 */
export async function prepareModel(input: {
  /** A built-in name or a directory. */
  readonly model: string
  readonly builtinDir: string
  readonly dataDir: string
  progress(line: string): void
}): Promise<HostedModel> {
  const { name, directory: source } = await resolveModel(input.model, input.builtinDir)
  const directory = join(input.dataDir, 'models', name)
  input.progress(`preparing the model ${name} (once, then it is kept in ${directory})`)
  const manifest = await importModel(source, directory)
  return { manifest, directory }
}
