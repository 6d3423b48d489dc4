import { CrowdError } from '../errors.ts'
import { LAYERS_MAX } from '../limits.ts'
import type { JsonFields } from '../model/json-fields.ts'
import type { Activation, Decoder, HeadSpec, Norm } from '../decoder/decoder.ts'
import { vector } from '../decoder/decoder.ts'

/** How the config.json of one family becomes a decoder. */
export type Family = {
  /** `model_type` of config.json. */
  readonly modelType: string
  /** The class that `architectures` must name. */
  readonly architecture: string
  /** What the family's configuration class in transformers 5.24 has where a field is absent; null: nothing. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** Fields that may be null in spite of a default, which then doesn't hold. */
  readonly nullable?: readonly string[]
  /** The kind of layer whose rotary settings are the main ones, where the file nests them by kind. */
  readonly ropeLayer?: string
  /** Tokens that the model was made for. */
  readonly context: (fields: JsonFields) => number
  /** @throws CrowdError model-invalid, model-unsupported (the field is named) */
  readonly describe: (fields: JsonFields, contextLength: number) => FamilyDecoder
}

/** What a family decides; what all share is read by parse-decoder.ts. */
export type FamilyDecoder = Omit<Decoder, 'architecture' | 'eosTokenIds'>

export const SIZE = { min: 1, max: 1 << 20 }
const CONTEXT = { min: 1, max: 1 << 24 }

/** The field under any of its names. @throws CrowdError model-invalid, also where two names differ */
export function sizeOf(fields: JsonFields, ...names: readonly string[]): number {
  const given = names.filter((candidate) => fields.has(candidate))
  const [name = names[0] ?? '', ...others] = given
  const size = fields.integer(name, SIZE)
  const odd = others.find((other) => fields.value(other) !== size)
  if (odd === undefined) return size
  throw new CrowdError('model-invalid', `config.json: "${name}" and "${odd}" differ.`)
}

/** Tokens that a layer with a window sees; 0 = all, where the field is null. */
export function windowOf(fields: JsonFields): number {
  return fields.has('sliding_window') ? sizeOf(fields, 'sliding_window') : 0
}

export function layerCountOf(fields: JsonFields, name = 'num_hidden_layers'): number {
  return fields.integer(name, { min: 1, max: LAYERS_MAX })
}

export function contextOf(fields: JsonFields, name = 'max_position_embeddings'): number {
  return fields.integer(name, CONTEXT)
}

export function vocabOf(fields: JsonFields): number {
  return fields.integer('vocab_size', { min: 2, max: 1 << 24 })
}

/** A switch of config.json; null is off. */
export function flag(fields: JsonFields, name: string): boolean {
  return fields.has(name) && fields.boolean(name)
}

export function numberOr(fields: JsonFields, name: string, fallback: number): number {
  return fields.has(name) ? fields.number(name) : fallback
}

/** @throws CrowdError model-unsupported where a field has another value than the one that is supported */
export function requireValue(
  fields: JsonFields,
  name: string,
  supported: readonly (string | number | boolean)[],
): void {
  const value = fields.value(name)
  if (value === undefined || value === null || supported.some((one) => one === value)) return
  const rest = supported.map((one) => JSON.stringify(one)).join(' or ')
  throw new CrowdError(
    'model-unsupported',
    `config.json: "${name}": ${JSON.stringify(value)} is not supported${rest === '' ? '' : `; ${rest} is`}.`,
  )
}

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  silu: 'silu',
  swish: 'silu',
  gelu: 'gelu',
  gelu_new: 'gelu-tanh',
  gelu_pytorch_tanh: 'gelu-tanh',
  gelu_fast: 'gelu-tanh',
  relu: 'relu',
}

/** @throws CrowdError model-unsupported */
export function activationOf(fields: JsonFields, name: string): Activation {
  const given = fields.string(name)
  const known = Object.hasOwn(ACTIVATIONS, given) ? ACTIVATIONS[given] : undefined
  if (known) return known
  throw new CrowdError(
    'model-unsupported',
    `config.json: "${name}": "${given}" is not supported; ${Object.keys(ACTIVATIONS).join(', ')} are.`,
  )
}

export type Heads = {
  readonly headCount: number
  readonly kvHeadCount: number
  readonly headSize: number
}

/** Query heads, key-value heads and their size, checked against each other. @throws CrowdError model-invalid */
export function headsOf(fields: JsonFields, hiddenSize: number): Heads {
  const headCount = fields.integer('num_attention_heads', SIZE)
  const kvHeadCount = fields.has('num_key_value_heads')
    ? fields.integer('num_key_value_heads', SIZE)
    : headCount
  const headSize = fields.has('head_dim')
    ? fields.integer('head_dim', SIZE)
    : hiddenSize / headCount
  return checkHeads({ headCount, kvHeadCount, headSize })
}

export function checkHeads(heads: Heads): Heads {
  const { headCount, kvHeadCount, headSize } = heads
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
  return heads
}

export function rmsNorm(name: string, size: number, epsilon: number, plus = 0): Norm {
  const weight = { ...vector(`${name}.weight`, size), plus }
  return { kind: 'rms', weight, bias: null, epsilon }
}

export function layerNorm(name: string, size: number, epsilon: number): Norm {
  return {
    kind: 'layer',
    weight: vector(`${name}.weight`, size),
    bias: vector(`${name}.bias`, size),
    epsilon,
  }
}

/** The output matrix: the embedding's where they're tied, else `lm_head.weight`. */
export function headOf(fields: JsonFields, embedding: string): HeadSpec {
  const tied = flag(fields, 'tie_word_embeddings')
  return { source: tied ? embedding : 'lm_head.weight', bias: null, softcap: 0, tied }
}
