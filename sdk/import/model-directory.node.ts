import { readFile, readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { tokenizerRemedy, weightsRemedy } from '../core/model/missing-files.ts'
import { MODEL_FILE_MAX_BYTES } from '../core/model/parse-manifest.ts'
import type { ModelSource } from './model-source.ts'
import { isFile, openSafetensors, parseJson, weightFiles } from './safetensors-source.node.ts'

/** Kept beside the blocks as they are; the first one is required. */
const MODEL_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'generation_config.json',
  'special_tokens_map.json',
  'chat_template.jinja',
] as const

/**
 * Opens a directory in the Hugging Face layout: config.json, tokenizer.json, safetensors.
 * @throws CrowdError model-invalid (the file is named)
 */
export async function openModelDirectory(directory: string): Promise<ModelSource> {
  const config = await readJson(directory, 'config.json')
  if (config === undefined) {
    const remedy = weightsRemedy(directory, await readdir(directory))
    throw new CrowdError('model-invalid', `${directory} has no config.json. ${remedy}`.trimEnd())
  }
  const files = await presentModelFiles(directory)
  const sources = ['config.json', ...files, ...(await weightFiles(directory))]
  const generationConfig = await readJson(directory, 'generation_config.json')
  const stamp = await fingerprint(directory, sources)
  // Last: whatever fails before holds no file open.
  const weights = await openSafetensors(directory)
  return {
    name: basename(directory),
    config,
    generationConfig,
    files: new Map(files.map((file) => [file, () => readModelFile(directory, file)])),
    weights,
    fingerprint: stamp,
    close: weights.close,
  }
}

/** Which of them are there. @throws CrowdError model-invalid where there is no tokenizer.json */
export async function presentModelFiles(directory: string): Promise<string[]> {
  const present = await Promise.all(MODEL_FILES.map((file) => isFile(join(directory, file))))
  const files = MODEL_FILES.filter((_, i) => present[i])
  if (files.includes(MODEL_FILES[0])) return files
  const remedy = tokenizerRemedy(directory, await readdir(directory))
  throw new CrowdError('model-invalid', `${directory} has no ${MODEL_FILES[0]}. ${remedy}`)
}

/** A JSON file of the directory; undefined where there is none. @throws CrowdError model-invalid */
export async function readJson(directory: string, file: string): Promise<unknown> {
  const path = join(directory, file)
  if (!(await isFile(path))) return undefined
  return parseJson(await readFile(path, 'utf8'), file)
}

async function fingerprint(directory: string, files: readonly string[]): Promise<string> {
  const lines = await Promise.all(
    files.map(async (file) => {
      const { size, mtimeMs } = await stat(join(directory, file))
      return `${file} ${size} ${mtimeMs}`
    }),
  )
  return lines.join('\n')
}

/** @throws CrowdError model-unsupported where the file is too large to hand to every asker */
export async function readModelFile(directory: string, file: string): Promise<Uint8Array> {
  const bytes = await readFile(join(directory, file))
  if (bytes.length > 0 && bytes.length <= MODEL_FILE_MAX_BYTES) return bytes
  throw new CrowdError(
    'model-unsupported',
    `${file} has ${bytes.length} bytes; from 1 to ${MODEL_FILE_MAX_BYTES} are supported.`,
  )
}
