import { CrowdError } from '../core/errors.ts'
import { isRecord } from '../core/model/json-fields.ts'
import { tokenizerRemedy, weightsRemedy } from '../core/model/missing-files.ts'
import {
  asWeightDtype,
  isExportWord,
  type AskedDtype,
  type ExportChoice,
} from '../core/model/onnx/export-files.ts'
import { chooseGguf } from './choose-gguf.ts'
import { chooseOnnx, namedOnnx, type ChosenExport } from './choose-onnx.ts'
import { describeFiles } from './describe-files.ts'
import type { HubFile, HubListing } from './hub-files.ts'

/** What is to be downloaded of a repository. */
export type ChosenFiles = {
  readonly kind: 'safetensors' | 'onnx' | 'gguf'
  readonly files: readonly HubFile[]
  /** Path of what is imported, in the repository; '' = the directory itself. */
  readonly entry: string
  /** Of an ONNX export, what was taken of how much. */
  readonly choice?: ExportChoice
}

export type Wish = {
  /** A path, or a quantisation such as `Q4_K_M`; null = whatever suits. */
  readonly part: string | null
  readonly dtype: AskedDtype | null
}

const CONFIG = 'config.json'
const TOKENIZER = 'tokenizer.json'
const SINGLE = 'model.safetensors'
export const SAFETENSORS_INDEX = 'model.safetensors.index.json'
/** Beside the weights, where they are there. */
const SETTINGS: readonly string[] = [
  CONFIG,
  TOKENIZER,
  'tokenizer_config.json',
  'generation_config.json',
  'special_tokens_map.json',
  'chat_template.jinja',
]

/**
 * The files that a model needs, of all that a repository holds: safetensors first, since every dtype can be made of
 * them, then an ONNX export, then a GGUF file; where only exports have such a dtype, an export. `readIndex` gives the
 * text of the index of a model in several files.
 * @throws CrowdError model-not-found and bad-option, which list what there is; model-invalid
 */
export async function chooseFiles(
  listing: HubListing,
  wish: Wish,
  readIndex: (file: HubFile) => Promise<string>,
): Promise<ChosenFiles> {
  const { part, dtype } = wish
  if (part !== null) return namedPart(listing, part, dtype)
  if (dtype !== null && isExportWord(dtype)) {
    const onnx = chooseOnnx(listing, dtype)
    return onnx === null ? noExport(listing, dtype) : exportFiles(listing, onnx)
  }
  const tensors = await safetensors(listing, readIndex)
  if (tensors.length > 0) {
    return { kind: 'safetensors', files: [...settingsOf(listing), ...tensors], entry: '' }
  }
  const onnx = chooseOnnx(listing, dtype)
  if (onnx !== null) return exportFiles(listing, onnx)
  const gguf = chooseGguf(listing, null)
  if (gguf[0] !== undefined) return { kind: 'gguf', files: gguf, entry: gguf[0].path }
  throw nothing(
    listing,
    'has no weights that can be read: neither safetensors nor ONNX nor GGUF',
    weightsRemedy(
      listing.repo,
      listing.files.map(({ path }) => path),
    ),
  )
}

function namedPart(listing: HubListing, part: string, dtype: Wish['dtype']): ChosenFiles {
  if (part.endsWith('.onnx')) {
    const onnx = namedOnnx(listing, part, dtype)
    if (onnx === null) throw nothing(listing, `has no file ${part}`)
    return exportFiles(listing, onnx)
  }
  const gguf = chooseGguf(listing, part)
  if (gguf[0] === undefined) throw nothing(listing, `has no GGUF file "${part}"`)
  if (dtype !== null) asWeightDtype(dtype, part)
  return { kind: 'gguf', files: gguf, entry: gguf[0].path }
}

function exportFiles(listing: HubListing, { choice, files }: ChosenExport): ChosenFiles {
  const all = [...settingsOf(listing), ...files]
  return { kind: 'onnx', files: all, entry: choice.path, choice }
}

function noExport(listing: HubListing, dtype: AskedDtype): never {
  asWeightDtype(dtype, listing.repo)
  throw nothing(listing, `has no ${dtype}`)
}

async function safetensors(
  listing: HubListing,
  readIndex: (file: HubFile) => Promise<string>,
): Promise<HubFile[]> {
  const single = listing.files.find(({ path }) => path === SINGLE)
  if (single !== undefined) return [single]
  const index = listing.files.find(({ path }) => path === SAFETENSORS_INDEX)
  if (index === undefined) return []
  const names = shardNames(await readIndex(index))
  if (names === null) {
    throw new CrowdError('model-invalid', `${listing.repo}: ${SAFETENSORS_INDEX} is malformed.`)
  }
  const shards = names.map((name) => {
    const shard = listing.files.find(({ path }) => path === name)
    if (shard !== undefined) return shard
    const message = `${listing.repo} lacks ${name}, which ${SAFETENSORS_INDEX} names.`
    throw new CrowdError('model-invalid', message)
  })
  return [index, ...shards]
}

/** null where the text is no index. */
function shardNames(text: string): string[] | null {
  const map = weightMap(text)
  if (map === null) return null
  const names = [...new Set(Object.values(map))]
  const isName = (name: unknown): name is string =>
    typeof name === 'string' && /^[\w.-]+\.safetensors$/.test(name)
  return names.length > 0 && names.every(isName) ? names.sort() : null
}

function weightMap(text: string): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(text)
    const map = isRecord(json) ? json['weight_map'] : null
    return isRecord(map) ? map : null
  } catch {
    return null
  }
}

/**
 * What stands beside the weights.
 * @throws CrowdError model-not-found where config.json is missing, model-invalid where tokenizer.json is
 */
function settingsOf(listing: HubListing): HubFile[] {
  const settings = listing.files.filter(({ path }) => SETTINGS.includes(path))
  const has = (name: string): boolean => settings.some(({ path }) => path === name)
  if (!has(CONFIG)) throw nothing(listing, `has no ${CONFIG}`)
  if (has(TOKENIZER)) return settings
  const names = listing.files.map(({ path }) => path)
  const message = `${listing.repo} has no ${TOKENIZER}. ${tokenizerRemedy(listing.repo, names)}`
  throw new CrowdError('model-invalid', message)
}

function nothing(listing: HubListing, what: string, remedy = ''): CrowdError {
  const message = `${listing.repo} ${what}. It has: ${describeFiles(listing.files)}. ${remedy}`
  return new CrowdError('model-not-found', message.trimEnd())
}
