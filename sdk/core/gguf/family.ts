import { CrowdError } from '../errors.ts'
import type { Metadata } from './metadata.ts'
import type { GgufTensor } from './place-tensors.ts'
import type { Change } from './tensor-view.ts'

/** What a family needs to know of a file. */
export type GgufModel = {
  readonly file: string
  readonly metadata: Metadata
  readonly tensors: ReadonlyMap<string, GgufTensor>
}

/**
 * How the files of one `general.architecture` become the Hugging Face layout. Names and changes are facts of
 * llama.cpp's converter.
 */
export type GgufFamily = {
  /** `general.architecture`. */
  readonly name: string
  /** Fields of config.json that the family has of its own, over `describeModel`. */
  readonly config: (sizes: GgufSizes) => Readonly<Record<string, unknown>>
  /** Tensor names, GGUF → Hugging Face, without `.weight` or `.bias`. */
  readonly names: Readonly<Record<string, string>>
  /** The same within a layer: `blk.N.` → `layerPrefix` + N + `.`. */
  readonly layerNames: Readonly<Record<string, string>>
  readonly layerPrefix: string
  /** Stacks of experts within a layer; `{}` stands for the expert's number. */
  readonly expertNames?: Readonly<Record<string, string>>
  /** What the converter did to a tensor, by its name in the file without layer and `.weight` or `.bias`. */
  readonly change?: (part: string, sizes: GgufSizes) => Change
}

export type GgufSizes = {
  readonly model: GgufModel
  /** A metadata entry of the architecture. */
  readonly key: (name: string) => string
  readonly layers: number
  readonly hidden: number
  readonly heads: number
  readonly kvHeads: number
  readonly headSize: number
  readonly inner: number
  readonly context: number
  readonly vocabulary: number
}

/** @throws CrowdError model-invalid, model-unsupported (the entry or tensor is named) */
export function readSizes(model: GgufModel, architecture: string): GgufSizes {
  const { metadata, tensors, file } = model
  const key = (name: string): string => `${architecture}.${name}`
  const hidden = metadata.count(key('embedding_length'))
  const heads = metadata.count(key('attention.head_count'))
  const optional = (name: string, fallback: number): number =>
    metadata.has(key(name)) ? metadata.count(key(name)) : fallback
  const headSize = optional('attention.key_length', hidden / heads)
  if (optional('attention.value_length', headSize) !== headSize) {
    throw unsupported(file, `${key('attention.value_length')} differs from the keys' length`)
  }
  const table = tensors.get('token_embd.weight')
  if (table?.dims.length !== 2) {
    throw new CrowdError('model-invalid', `${file} has no matrix token_embd.weight.`)
  }
  return {
    model,
    key,
    hidden,
    heads,
    headSize,
    kvHeads: optional('attention.head_count_kv', heads),
    layers: metadata.count(key('block_count')),
    inner: metadata.count(key('feed_forward_length')),
    context: metadata.count(key('context_length')),
    vocabulary: table.dims[0] ?? 0,
  }
}

export function unsupported(file: string, what: string): CrowdError {
  return new CrowdError('model-unsupported', `${file}: ${what}; this is not supported.`)
}

/** Whether any layer has the tensor. */
export function hasLayerTensor({ model }: GgufSizes, part: string): boolean {
  return model.tensors.has(`blk.0.${part}`)
}

/** An entry of the architecture, or nothing where the file doesn't have it. */
export function optionalNumber({ model, key }: GgufSizes, name: string): number | undefined {
  return model.metadata.has(key(name)) ? model.metadata.number(key(name)) : undefined
}

/** Entries that change the numbers and that none of the families here has, and the values that don't. */
const NEUTRAL: Readonly<Record<string, readonly unknown[]>> = {
  'attention.causal': [true],
  'attention.chunk_size': [0],
  'attention.clamp_kqv': [0],
  'attention.scale': [0],
  'attention.temperature_scale': [0, 1],
  embedding_scale: [0, 1],
  expert_gating_func: [0, 1],
  expert_group_count: [0, 1],
  expert_group_used_count: [0, 1],
  expert_shared_count: [0],
  expert_weights_scale: [0, 1],
  leading_dense_block_count: [0],
  logit_scale: [0, 1],
  nextn_predict_layers: [0],
  pooling_type: [0],
  residual_scale: [0, 1],
  'rope.scaling.yarn_log_multiplier': [0],
  router_logit_softcapping: [0],
}

/** @throws CrowdError model-unsupported for an entry that would change the numbers */
export function refuseOddEntries(sizes: GgufSizes): void {
  for (const [name, neutral] of Object.entries(NEUTRAL)) refuseUnless(sizes, name, neutral)
  // Layers with a window may have heads of their own size.
  for (const name of ['attention.key_length_swa', 'attention.value_length_swa']) {
    refuseUnless(sizes, name, [0, sizes.headSize])
  }
  const rotated = optionalNumber(sizes, 'rope.dimension_count') ?? sizes.headSize
  refuseUnless(sizes, 'rope.dimension_count_swa', [0, rotated])
}

/** @throws CrowdError model-unsupported where the entry is there with another value than those, which change nothing */
export function refuseUnless(
  { model, key }: GgufSizes,
  name: string,
  neutral: readonly unknown[],
): void {
  const { metadata, file } = model
  if (!metadata.has(key(name))) return
  const value = metadata.value(key(name))
  const plain = typeof value === 'boolean' ? value : metadata.number(key(name))
  if (!neutral.includes(plain)) throw unsupported(file, `${key(name)} is ${String(plain)}`)
}
