import { CrowdError } from '../errors.ts'
import { LAYERS_MAX } from '../limits.ts'
import { jsonFields, type JsonFields } from './json-fields.ts'
import { parseRope, type RopeParams } from './rope.ts'

/** What decides the shape of a Llama-family decoder. */
export type LlamaConfig = {
  readonly architecture: string
  readonly hiddenSize: number
  readonly intermediateSize: number
  readonly layerCount: number
  readonly headCount: number
  readonly kvHeadCount: number
  readonly headSize: number
  readonly vocabSize: number
  readonly contextLength: number
  readonly normEpsilon: number
  readonly tiedEmbedding: boolean
  readonly rope: RopeParams
  readonly eosTokenIds: readonly number[]
}

const ARCHITECTURE = 'LlamaForCausalLM'
const SIZE_MAX = 1 << 20
const CONTEXT_MAX = 1 << 24

/**
 * Parses config.json of a Llama-family model. Nothing is guessed: what would change the numbers and isn't
 * supported is refused by its name.
 * @throws CrowdError model-invalid, model-unsupported
 */
export function parseLlamaConfig(json: unknown): LlamaConfig {
  const fields = jsonFields(json, 'config.json')
  const architecture = parseArchitecture(fields)
  refuseUnsupported(fields)
  const size = { min: 1, max: SIZE_MAX }
  const hiddenSize = fields.integer('hidden_size', size)
  const headCount = fields.integer('num_attention_heads', size)
  const config: LlamaConfig = {
    architecture,
    hiddenSize,
    headCount,
    kvHeadCount: fields.has('num_key_value_heads')
      ? fields.integer('num_key_value_heads', size)
      : headCount,
    headSize: fields.has('head_dim') ? fields.integer('head_dim', size) : hiddenSize / headCount,
    intermediateSize: fields.integer('intermediate_size', size),
    layerCount: fields.integer('num_hidden_layers', { min: 1, max: LAYERS_MAX }),
    vocabSize: fields.integer('vocab_size', { min: 2, max: 1 << 24 }),
    contextLength: fields.integer('max_position_embeddings', { min: 1, max: CONTEXT_MAX }),
    normEpsilon: fields.number('rms_norm_eps'),
    tiedEmbedding: fields.has('tie_word_embeddings') && fields.boolean('tie_word_embeddings'),
    rope: parseRope(fields),
    eosTokenIds: parseTokenIds(fields.value('eos_token_id'), 'config.json'),
  }
  checkHeads(config)
  return config
}

/**
 * One id, a list of ids, or nothing.
 * @throws CrowdError model-invalid
 */
export function parseTokenIds(value: unknown, file: string): number[] {
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.map((id) => {
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0) return id
    throw new CrowdError('model-invalid', `${file}: "eos_token_id" holds ${JSON.stringify(id)}.`)
  })
}

function parseArchitecture(fields: JsonFields): string {
  const type = fields.string('model_type')
  const names = fields.has('architectures') ? fields.array('architectures') : [ARCHITECTURE]
  if (type !== 'llama' || !names.includes(ARCHITECTURE)) {
    const name = names.length > 0 ? String(names[0]) : type
    throw new CrowdError(
      'model-unsupported',
      `config.json: the architecture ${name} (model_type ${type}) is not supported; ${ARCHITECTURE} is.`,
    )
  }
  return ARCHITECTURE
}

function refuseUnsupported(fields: JsonFields): void {
  for (const flag of ['attention_bias', 'mlp_bias']) {
    if (fields.has(flag) && fields.boolean(flag)) {
      throw new CrowdError('model-unsupported', `config.json: "${flag}": true is not supported.`)
    }
  }
  const activation = fields.string('hidden_act')
  if (activation !== 'silu') {
    throw new CrowdError(
      'model-unsupported',
      `config.json: "hidden_act": "${activation}" is not supported; "silu" is.`,
    )
  }
  for (const field of ['quantization_config', 'sliding_window']) {
    if (fields.has(field)) {
      throw new CrowdError('model-unsupported', `config.json: "${field}" is not supported.`)
    }
  }
}

function checkHeads(config: LlamaConfig): void {
  const { headCount, kvHeadCount, headSize } = config
  if (!Number.isInteger(headSize) || headSize % 2 !== 0) {
    throw new CrowdError(
      'model-invalid',
      `config.json: the head size ${headSize} is not an even whole number; give "head_dim".`,
    )
  }
  if (headCount % kvHeadCount !== 0) {
    throw new CrowdError(
      'model-invalid',
      `config.json: ${headCount} attention heads can't share ${kvHeadCount} key-value heads.`,
    )
  }
}
