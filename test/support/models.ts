import type { Decoder } from '../../sdk/core/decoder/decoder.ts'
import { contextOf } from '../../sdk/core/families/family.ts'
import { llamaConfig, type LlamaConfig } from '../../sdk/core/families/llama-config.ts'
import { llamaDecoder } from '../../sdk/core/families/llama-decoder.ts'
import type { Graph } from '../../sdk/core/graph/graph.ts'
import { jsonFields } from '../../sdk/core/model/json-fields.ts'
import type { PlacedWeight } from '../../sdk/core/model/layout-weights.ts'
import { blockData } from '../../sdk/core/model/make-weight.ts'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import { planModel, planWholeModel, type BlockPlan } from '../../sdk/core/model/plan-model.ts'
import { parseSafetensors, safetensorsHeaderBytes } from '../../sdk/core/model/safetensors.ts'
import type { SourceTensor, TensorSource } from '../../sdk/core/model/tensor-source.ts'
import { bytesPerElement, elementCount } from '../../sdk/core/tensor/dtype.ts'
import { floatsToBfloats, floatsToHalves } from '../../sdk/core/tensor/float16.ts'
import { asBytes } from '../../sdk/core/tensor/views.ts'

/** A config.json as Hugging Face writes it; small, with grouped heads and a tied embedding. */
export const TINY_CONFIG = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 96,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  hidden_act: 'silu',
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
  eos_token_id: 2,
} as const

/** The sizes in a Llama's config.json; `changes` go into TINY_CONFIG. */
export function tinyLlama(changes: Readonly<Record<string, unknown>> = {}): LlamaConfig {
  const fields = jsonFields({ ...TINY_CONFIG, ...changes }, 'config.json')
  return llamaConfig(fields, contextOf(fields))
}

/** Shapes of all tensors of a model, by the names that safetensors files use. */
export function tensorShapes(config: LlamaConfig): Map<string, number[]> {
  const { hiddenSize: hidden, intermediateSize: inner, vocabSize: vocab } = config
  const heads = config.headCount * config.headSize
  const kvHeads = config.kvHeadCount * config.headSize
  const shapes = new Map([['model.embed_tokens.weight', [vocab, hidden]]])
  for (let layer = 0; layer < config.layerCount; layer++) {
    const name = `model.layers.${layer}`
    shapes.set(`${name}.input_layernorm.weight`, [hidden])
    shapes.set(`${name}.self_attn.q_proj.weight`, [heads, hidden])
    shapes.set(`${name}.self_attn.k_proj.weight`, [kvHeads, hidden])
    shapes.set(`${name}.self_attn.v_proj.weight`, [kvHeads, hidden])
    shapes.set(`${name}.self_attn.o_proj.weight`, [hidden, heads])
    shapes.set(`${name}.post_attention_layernorm.weight`, [hidden])
    shapes.set(`${name}.mlp.gate_proj.weight`, [inner, hidden])
    shapes.set(`${name}.mlp.up_proj.weight`, [inner, hidden])
    shapes.set(`${name}.mlp.down_proj.weight`, [hidden, inner])
  }
  shapes.set('model.norm.weight', [hidden])
  if (!config.tiedEmbedding) shapes.set('lm_head.weight', [vocab, hidden])
  return shapes
}

/** Seeded uniform numbers in [-1, 1) (xorshift32). */
export function randomFloats(length: number, seed: number): Float32Array<ArrayBuffer> {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1
  return Float32Array.from({ length }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state / 2 ** 31
  })
}

/** Made-up weights: matrices keep the size of what goes through them, norms are near one. */
export function randomTensors(
  config: LlamaConfig,
  seed = 1,
): Map<string, Float32Array<ArrayBuffer>> {
  const tensors = new Map<string, Float32Array<ArrayBuffer>>()
  for (const [name, dims] of tensorShapes(config)) {
    const values = randomFloats(elementCount(dims), seed + 7919 * tensors.size)
    const columns = dims[1]
    const range = columns === undefined ? 0.3 : 1.5 / Math.sqrt(columns)
    tensors.set(
      name,
      values.map((value) => value * range + (columns === undefined ? 1 : 0)),
    )
  }
  return tensors
}

/** Weights in memory, stored as `type`. */
export function memorySource(
  config: LlamaConfig,
  tensors: ReadonlyMap<string, Float32Array<ArrayBuffer>>,
  type: SourceTensor['type'] = 'f32',
): TensorSource {
  const shapes = tensorShapes(config)
  const bytes = new Map(
    [...tensors].map(([name, values]) => [name, asBytes(encode(values, type))] as const),
  )
  return {
    find: (name) => {
      const dims = shapes.get(name)
      return dims && bytes.has(name) ? { name, type, dims } : undefined
    },
    read: (name, offset, length) =>
      Promise.resolve(bytes.get(name)?.slice(offset, offset + length) ?? new Uint8Array()),
  }
}

function encode(
  values: Float32Array<ArrayBuffer>,
  type: SourceTensor['type'],
): ArrayBufferView<ArrayBuffer> {
  if (type === 'f32') return values
  return type === 'f16' ? floatsToHalves(values) : floatsToBfloats(values)
}

/** A safetensors file. */
export function writeSafetensors(
  config: LlamaConfig,
  tensors: ReadonlyMap<string, Float32Array<ArrayBuffer>>,
  type: SourceTensor['type'] = 'f32',
): Uint8Array<ArrayBuffer> {
  const shapes = tensorShapes(config)
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } }
  let end = 0
  const parts = [...tensors].map(([name, values]) => {
    const bytes = asBytes(encode(values, type))
    const from = end
    end += values.length * bytesPerElement(type)
    header[name] = {
      dtype: type.toUpperCase(),
      shape: shapes.get(name),
      data_offsets: [from, end],
    }
    return bytes
  })
  const json = new TextEncoder().encode(JSON.stringify(header))
  const file = new Uint8Array(8 + json.length + end)
  new DataView(file.buffer).setBigUint64(0, BigInt(json.length), true)
  file.set(json, 8)
  let at = 8 + json.length
  for (const bytes of parts) {
    file.set(bytes, at)
    at += bytes.length
  }
  return file
}

/** Weights of a safetensors file in memory. */
export function fileSource(file: Uint8Array<ArrayBuffer>): TensorSource {
  const headerBytes = safetensorsHeaderBytes(file, file.length, 'weights')
  const tensors = parseSafetensors(file.subarray(8, 8 + headerBytes), file.length, 'weights')
  return {
    find: (name) => tensors.get(name),
    read: (name, offset, length) => {
      const from = (tensors.get(name)?.offset ?? 0) + offset
      return Promise.resolve(file.slice(from, from + length))
    },
  }
}

/** A model cut into blocks, and the same model whole, from one source of weights. */
export type TestModel = {
  readonly decoder: Decoder
  readonly dtype: WeightDtype
  readonly plans: readonly BlockPlan[]
  readonly blockBytes: (block: number) => Promise<Uint8Array<ArrayBuffer>>
  readonly whole: { readonly graph: Graph; readonly data: () => Promise<Uint8Array<ArrayBuffer>> }
}

export function createTestModel(
  decoder: Decoder,
  dtype: WeightDtype,
  source: TensorSource,
): TestModel {
  const collect = async (
    weights: readonly PlacedWeight[],
    length: number,
  ): Promise<Uint8Array<ArrayBuffer>> => {
    const bytes = new Uint8Array(length)
    let at = 0
    for await (const run of blockData(weights, source)) {
      bytes.set(run, at)
      at += run.length
    }
    return bytes
  }
  return assembleTestModel(decoder, dtype, collect)
}

/** `collect`: the data of a block, as long as said. */
export function assembleTestModel(
  decoder: Decoder,
  dtype: WeightDtype,
  collect: (weights: readonly PlacedWeight[], length: number) => Promise<Uint8Array<ArrayBuffer>>,
): TestModel {
  const plans = planModel(decoder, dtype)
  const whole = planWholeModel(decoder, dtype)
  return {
    decoder,
    dtype,
    plans,
    blockBytes: (block) => {
      const plan = plans[block]
      if (!plan) throw new Error(`no block ${block}`)
      return collect(plan.weights, plan.dataBytes)
    },
    whole: {
      graph: whole.graph,
      data: () => collect(whole.layout.weights, whole.layout.bytes),
    },
  }
}

/** A model with made-up weights; `changes` go into its config.json. */
export function createRandomModel(
  changes: Readonly<Record<string, unknown>> = {},
  dtype: WeightDtype = 'f32',
): TestModel & { readonly config: LlamaConfig } {
  const config = tinyLlama(changes)
  return { ...createLlamaModel(config, dtype, memorySource(config, randomTensors(config))), config }
}

/** A Llama of these sizes with the weights of `source`. */
export function createLlamaModel(
  config: LlamaConfig,
  dtype: WeightDtype,
  source: TensorSource,
): TestModel {
  return createTestModel(completeDecoder(llamaDecoder(config)), dtype, source)
}

/** What a family describes, with what parsing a whole config.json would add. */
export function completeDecoder(described: ReturnType<typeof llamaDecoder>): Decoder {
  return { ...described, architecture: 'LlamaForCausalLM', eosTokenIds: [2] }
}
