import { CrowdError } from '../errors.ts'
import { isRecord, jsonFields, type JsonFields } from '../model/json-fields.ts'
import { BLOOM } from './bloom.ts'
import { MIXTRAL, OLMOE, QWEN3_MOE } from './experts.ts'
import { FALCON } from './falcon.ts'
import { requireValue, type Family } from './family.ts'
import { fillDefaults } from './fill-defaults.ts'
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

/** Gemma 3 with pictures keeps its text model in `text_config`. */
const GEMMA3_WITH_PICTURES = {
  ...GEMMA3,
  modelType: 'gemma3',
  architecture: 'Gemma3ForConditionalGeneration',
}

export type FamilyConfig = {
  readonly family: Family
  /** config.json with the family's defaults; of a model with several parts the text part. */
  readonly fields: JsonFields
  /** Whether the file itself says what ends an answer. */
  readonly hasOwnEos: boolean
}

/** @throws CrowdError model-invalid, model-unsupported for a family that isn't known or a quantised model */
export function readConfig(json: unknown): FamilyConfig {
  const outer = jsonFields(json, 'config.json')
  if (outer.has('quantization_config')) {
    throw new CrowdError(
      'model-unsupported',
      'config.json: "quantization_config" is not supported; take the model that is not quantised, or a GGUF file.',
    )
  }
  const found = findFamily(outer)
  const hasPictures = found === GEMMA3_WITH_PICTURES
  const family = hasPictures ? GEMMA3 : found
  const given = hasPictures ? textConfig(outer) : json
  // Cast: `jsonFields` has made sure that it's an object.
  const own = given as Readonly<Record<string, unknown>>
  const fields = jsonFields(fillDefaults(own, family), 'config.json')
  return { family, fields, hasOwnEos: own['eos_token_id'] !== undefined }
}

/** By `model_type`; `architectures` must agree where it's there. */
function findFamily(config: JsonFields): Family {
  const type = config.string('model_type')
  const names = config.has('architectures') ? config.array('architectures') : []
  const family = [...FAMILIES, GEMMA3_WITH_PICTURES].find(({ modelType }) => modelType === type)
  if (family && (names.length === 0 || names.includes(family.architecture))) return family
  const name = names.length > 0 ? String(names[0]) : type
  const known = FAMILIES.map(({ architecture }) => architecture).join(', ')
  throw new CrowdError(
    'model-unsupported',
    `config.json: the architecture ${name} (model_type ${type}) is not supported. Supported: ${known}.`,
  )
}

/** The text part's settings; whether the head is tied, and what ends an answer, the whole model says. */
function textConfig(outer: JsonFields): Record<string, unknown> {
  requireValue(outer.object('text_config'), 'model_type', [GEMMA3.modelType])
  const text = outer.value('text_config')
  const own = isRecord(text) ? text : {}
  return {
    ...own,
    tie_word_embeddings: outer.value('tie_word_embeddings'),
    eos_token_id: outer.value('eos_token_id') ?? own['eos_token_id'],
  }
}
