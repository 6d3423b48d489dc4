import { stat } from 'node:fs/promises'
import { CrowdError } from '../core/errors.ts'
import { openGguf } from './gguf-source.node.ts'
import { openModelDirectory } from './model-directory.node.ts'
import type { ModelSource } from './model-source.ts'

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
