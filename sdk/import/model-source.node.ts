import { stat } from 'node:fs/promises'
import { CrowdError } from '../core/errors.ts'
import type { TensorSource } from '../core/model/tensor-source.ts'
import { openGguf } from './gguf-source.node.ts'
import { openModelDirectory } from './model-directory.node.ts'

/** A published model that is opened but not read, whatever it is stored as. */
export type ModelSource = {
  /** What it is called where nobody names it. */
  readonly name: string
  /** config.json in the Hugging Face layout, parsed. */
  readonly config: unknown
  /** generation_config.json, parsed; undefined where there is none. */
  readonly generationConfig: unknown
  /** Tokenizer and settings files that are there, by name. */
  readonly files: ReadonlyMap<string, () => Promise<Uint8Array>>
  /** By the names that the Hugging Face layout gives them. */
  readonly weights: TensorSource
  /** Changes when any source file does. */
  readonly fingerprint: string
  readonly close: () => Promise<void>
}

/**
 * Opens a model by path. Close it after use.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported (the part is named)
 */
export async function openModelSource(path: string): Promise<ModelSource> {
  const info = await stat(path).catch(() => null)
  if (info?.isDirectory()) return openModelDirectory(path)
  if (info?.isFile() && /\.gguf$/i.test(path)) return openGguf(path)
  throw new CrowdError('model-not-found', `There is no directory, GGUF or ONNX file ${path}.`)
}
