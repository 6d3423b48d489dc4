import type { Decoder } from '../decoder/decoder.ts'
import { CrowdError } from '../errors.ts'
import { isRecord, jsonFields, type JsonFields } from '../model/json-fields.ts'
import { BLOOM } from './bloom.ts'
import { MIXTRAL, OLMOE, QWEN3_MOE } from './experts.ts'
import { FALCON } from './falcon.ts'
import { ropeFields, type Family } from './family.ts'
import { GEMMA2, GEMMA3 } from './gemma.ts'
import { GPT_NEO } from './gpt-neo.ts'
import { GPT2 } from './gpt2.ts'
import { LLAMA } from './llama.ts'
import { MISTRAL } from './mistral.ts'
import { OPT } from './opt.ts'
import { PHI3 } from './phi3.ts'
import { QWEN2, QWEN3 } from './qwen.ts'
import { SMOLLM3 } from './smollm3.ts'

export const FAMILIES: readonly Family[] = [
  LLAMA,
  MISTRAL,
  SMOLLM3,
  QWEN2,
  QWEN3,
  QWEN3_MOE,
  PHI3,
  GEMMA2,
  GEMMA3,
  MIXTRAL,
  OLMOE,
  GPT2,
  GPT_NEO,
  OPT,
  BLOOM,
  FALCON,
]

/** A longer window must be asked for: every layer holds rotary tables of this many rows, and caches grow. */
export const CONTEXT_DEFAULT_MAX = 8192

/**
 * Parses config.json of any known family. Nothing is guessed: what would change the numbers and isn't
 * supported is refused by its name.
 * @param generation generation_config.json, which has the last word on what ends an answer
 * @param contextLength tokens to serve; default: the model's own, at most CONTEXT_DEFAULT_MAX
 * @throws CrowdError model-invalid, model-unsupported, bad-option for the context
 */
export function parseDecoder(
  config: unknown,
  generation?: unknown,
  contextLength?: number,
): Decoder {
  const { fields, family } = findFamily(jsonFields(config, 'config.json'))
  if (fields.has('quantization_config')) {
    throw new CrowdError(
      'model-unsupported',
      'config.json: "quantization_config" is not supported; take the model that is not quantised, or a GGUF file.',
    )
  }
  const served = servedContext(fields, family.context(fields), contextLength)
  const described = family.describe(fields, served)
  const own = parseTokenIds(fields.value('eos_token_id'), 'config.json')
  const eosTokenIds = chooseEos(own, generation, described.vocabSize)
  return { ...described, architecture: family.architecture, eosTokenIds }
}

/** By `model_type`; Gemma 3 with pictures keeps its text model in `text_config`. */
function findFamily(config: JsonFields): { fields: JsonFields; family: Family } {
  const type = config.string('model_type')
  if (type === 'gemma3') return { fields: config.object('text_config'), family: GEMMA3 }
  const names = config.has('architectures') ? config.array('architectures') : []
  const family = FAMILIES.find(({ modelType }) => modelType === type)
  if (family && (names.length === 0 || names.includes(family.architecture))) {
    return { fields: config, family }
  }
  const name = names.length > 0 ? String(names[0]) : type
  const known = FAMILIES.map(({ architecture }) => architecture).join(', ')
  throw new CrowdError(
    'model-unsupported',
    `config.json: the architecture ${name} (model_type ${type}) is not supported. Supported: ${known}.`,
  )
}

function servedContext(fields: JsonFields, own: number, wanted: number | undefined): number {
  if (wanted === undefined) return Math.min(own, unscaledContext(fields, own), CONTEXT_DEFAULT_MAX)
  if (Number.isInteger(wanted) && wanted > 0 && wanted <= own) return wanted
  throw new CrowdError('bad-option', `The context length must be from 1 to ${own}, not ${wanted}.`)
}

/** Where serving more tokens would change the answers to short texts, the context that changes nothing. */
function unscaledContext(fields: JsonFields, own: number): number {
  const rope = ropeFields(fields)
  const kind = rope?.value('rope_type') ?? rope?.value('type')
  if (kind !== 'longrope' && kind !== 'su') return own
  const name = 'original_max_position_embeddings'
  const holder = fields.has(name) ? fields : rope
  return holder?.has(name) ? holder.number(name) : own
}

/** generation_config.json has the last word. @throws CrowdError model-invalid */
export function chooseEos(
  own: readonly number[],
  generation: unknown,
  vocabSize: number,
): readonly number[] {
  const value = isRecord(generation) ? generation['eos_token_id'] : undefined
  const given = parseTokenIds(value, 'generation_config.json')
  const ids = given.length > 0 ? given : own
  const outside = ids.find((id) => id >= vocabSize)
  if (outside === undefined) return ids
  throw new CrowdError(
    'model-invalid',
    `The end-of-text id ${outside} is outside the vocabulary of ${vocabSize}.`,
  )
}

/** One id, a list of ids, or nothing. @throws CrowdError model-invalid */
export function parseTokenIds(value: unknown, file: string): number[] {
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.map((id) => {
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0) return id
    throw new CrowdError('model-invalid', `${file}: "eos_token_id" holds ${JSON.stringify(id)}.`)
  })
}
