import { CrowdError } from '../core/errors.ts'
import type { ModelId } from '../core/ids.ts'
import type { Manifest, WeightDtype } from '../core/model/manifest.ts'

export type ImportOptions = {
  /** Default: the directory's name. */
  readonly id?: ModelId
  /** Default: f16 where the source is f16 or bf16, else f32. */
  readonly dtype?: WeightDtype
  /** Tokens; default and upper bound: the model's own `max_position_embeddings`. */
  readonly contextLength?: number
}

/**
 * Cuts a model in the Hugging Face layout into blocks: writes `manifest.json` and `pieces/<sha256>` into
 * `storeDir`. Does nothing when the store is up to date with the source.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported (the message names the part)
 */
export function importModel(
  directory: string,
  storeDir: string,
  options: ImportOptions = {},
): Promise<Manifest> {
  throw new CrowdError('internal', `${directory} ${storeDir} ${String(options.id)}`)
}
