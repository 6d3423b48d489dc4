import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { isRecord } from '../core/model/json-fields.ts'
import { parseLlamaConfig, parseTokenIds, type LlamaConfig } from '../core/model/llama-config.ts'
import { MODEL_FILE_MAX_BYTES } from '../core/model/parse-manifest.ts'
import { isFile, parseJson, weightFiles } from './safetensors-source.node.ts'

/** Kept beside the blocks as they are; the first one is required. */
export const MODEL_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'generation_config.json',
  'special_tokens_map.json',
  'chat_template.jinja',
] as const

/** A model in the Hugging Face layout, looked at but not read. */
export type ModelDirectory = {
  readonly directory: string
  readonly config: LlamaConfig
  /** Tokenizer and settings files that are there. */
  readonly files: readonly string[]
  /** Changes when any source file does: names, sizes and times. */
  readonly fingerprint: string
}

/**
 * Checks that a directory holds a model that can be cut.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported (the part is named)
 */
export async function openModelDirectory(directory: string): Promise<ModelDirectory> {
  const info = await stat(directory).catch(() => null)
  if (!info?.isDirectory()) {
    throw new CrowdError('model-not-found', `There is no directory ${directory}.`)
  }
  const config = await readJson(directory, 'config.json')
  if (config === undefined) {
    throw new CrowdError('model-invalid', `${directory} has no config.json.`)
  }
  const parsed = parseLlamaConfig(config)
  if (!(await isFile(join(directory, MODEL_FILES[0])))) {
    throw new CrowdError('model-invalid', `${directory} has no ${MODEL_FILES[0]}.`)
  }
  const present = await Promise.all(MODEL_FILES.map((file) => isFile(join(directory, file))))
  const files = MODEL_FILES.filter((_, i) => present[i])
  const weights = await weightFiles(directory)
  const generation = await readJson(directory, 'generation_config.json')
  return {
    directory,
    config: { ...parsed, eosTokenIds: eosTokenIds(parsed, generation) },
    files,
    fingerprint: await fingerprint(directory, ['config.json', ...files, ...weights]),
  }
}

/** generation_config.json has the last word on what ends an answer. */
function eosTokenIds(config: LlamaConfig, generation: unknown): readonly number[] {
  const value = isRecord(generation) ? generation['eos_token_id'] : undefined
  const own = parseTokenIds(value, 'generation_config.json')
  const ids = own.length > 0 ? own : config.eosTokenIds
  const outside = ids.find((id) => id >= config.vocabSize)
  if (outside === undefined) return ids
  throw new CrowdError(
    'model-invalid',
    `The end-of-text id ${outside} is outside the vocabulary of ${config.vocabSize}.`,
  )
}

async function readJson(directory: string, file: string): Promise<unknown> {
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
