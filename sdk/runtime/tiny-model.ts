import type { ModelId } from '../core/ids.ts'
import type { LlamaConfig } from '../core/families/llama-config.ts'
import { llamaDecoder } from '../core/families/llama-decoder.ts'
import { blockData } from '../core/model/make-weight.ts'
import type { Block, Manifest, WeightDtype } from '../core/model/manifest.ts'
import { planModel } from '../core/model/plan-model.ts'
import type { TensorSource } from '../core/model/tensor-source.ts'
import { philox2x32 } from '../core/sampling/random.ts'
import type { BlockBytes } from './stage-runner.ts'

/** A model with made-up weights, small enough to be made in a moment: for the self-test and for tests. */
export type TinyModel = {
  readonly manifest: Manifest
  readonly config: LlamaConfig
  /** Fresh bytes of a block, since a runner takes them over. */
  blockBytes(block: number): Promise<BlockBytes>
  /** A tensor as in a weights file, f32. */
  tensor(name: string): Float32Array<ArrayBuffer>
}

export type TinyModelOptions = {
  readonly layerCount: number
  readonly dtype?: WeightDtype
  readonly hiddenSize?: number
  readonly contextLength?: number
  readonly vocabSize?: number
  readonly seed?: number
}

/** Llama with 4 heads, 2 of them for keys and values, and a tied embedding. */
export function createTinyModel(options: TinyModelOptions): TinyModel {
  const { dtype = 'f32', seed = 1, layerCount } = options
  const config = tinyConfig(options)
  const eosTokenIds = [0]
  const architecture = 'LlamaForCausalLM'
  const decoder = { ...llamaDecoder(config), architecture, eosTokenIds }
  const plans = planModel(decoder, dtype)
  const source = randomSource(config, seed)
  const blocks = plans.map(({ kind, dataBytes, f32Bytes, table }): Block => ({
    kind,
    graph: null,
    data: [],
    dataBytes,
    f32Bytes,
    ...(table === undefined ? {} : { table }),
  }))
  const manifest: Manifest = {
    format: 1,
    // Never leaves this process, so nothing gave it an id.
    id: `tiny-${seed}` as ModelId,
    revision: `tiny-${dtype}-${seed}-${layerCount}`,
    dtype,
    blocks,
    files: {},
    architecture,
    eosTokenIds,
    ...config,
  }
  return {
    manifest,
    config,
    tensor: (name) => source.values(name),
    async blockBytes(block) {
      const plan = plans[block]
      if (plan === undefined) throw new RangeError(`there is no block ${block}`)
      const data = new Uint8Array(plan.dataBytes)
      let offset = 0
      for await (const part of blockData(plan.weights, source)) {
        data.set(part, offset)
        offset += part.byteLength
      }
      return { graph: plan.graph?.slice() ?? null, data }
    },
  }
}

function tinyConfig(options: TinyModelOptions): LlamaConfig {
  const { layerCount, hiddenSize = 64, contextLength = 512, vocabSize = 96 } = options
  return {
    hiddenSize,
    intermediateSize: 2 * hiddenSize,
    layerCount,
    headCount: 4,
    kvHeadCount: 2,
    headSize: hiddenSize / 4,
    vocabSize,
    contextLength,
    normEpsilon: 1e-5,
    tiedEmbedding: true,
    rope: { theta: 10_000, size: hiddenSize / 4, scaling: { kind: 'none' } },
  }
}

type RandomSource = TensorSource & { values(name: string): Float32Array<ArrayBuffer> }

function randomSource(config: LlamaConfig, seed: number): RandomSource {
  const { hiddenSize, intermediateSize, headCount, kvHeadCount, headSize, vocabSize } = config
  const dims = (name: string): number[] | undefined => {
    const part = name.replace(/^model\.layers\.\d+\./, '').replace(/\.weight$/, '')
    return {
      'model.embed_tokens': [vocabSize, hiddenSize],
      'model.norm': [hiddenSize],
      input_layernorm: [hiddenSize],
      post_attention_layernorm: [hiddenSize],
      'self_attn.q_proj': [headCount * headSize, hiddenSize],
      'self_attn.k_proj': [kvHeadCount * headSize, hiddenSize],
      'self_attn.v_proj': [kvHeadCount * headSize, hiddenSize],
      'self_attn.o_proj': [hiddenSize, headCount * headSize],
      'mlp.gate_proj': [intermediateSize, hiddenSize],
      'mlp.up_proj': [intermediateSize, hiddenSize],
      'mlp.down_proj': [hiddenSize, intermediateSize],
    }[part]
  }
  const values = (name: string): Float32Array<ArrayBuffer> => {
    const shape = dims(name)
    if (shape === undefined) throw new RangeError(`there is no tensor ${name}`)
    return randomValues(name, shape, seed)
  }
  return {
    values,
    find(name) {
      const shape = dims(name)
      return shape === undefined ? undefined : { name, type: 'f32', dims: shape }
    },
    read(name, offset, length) {
      return Promise.resolve(new Uint8Array(values(name).buffer.slice(offset, offset + length)))
    },
  }
}

/** Matrices keep the size of what goes through them; norms scale by about one. */
function randomValues(
  name: string,
  dims: readonly number[],
  seed: number,
): Float32Array<ArrayBuffer> {
  const [rows = 1, columns] = dims
  const isVector = columns === undefined
  const count = rows * (columns ?? 1)
  const range = isVector ? 0.3 : Math.sqrt(3 / columns)
  const middle = isVector ? 1 : 0
  let stream = seed >>> 0
  for (const char of name) stream = (Math.imul(stream, 31) + (char.codePointAt(0) ?? 0)) >>> 0
  const values = new Float32Array(count)
  for (let i = 0; i < count; i++) {
    const [low] = philox2x32([i, stream], seed)
    values[i] = middle + (low / 2 ** 31 - 1) * range
  }
  return values
}
