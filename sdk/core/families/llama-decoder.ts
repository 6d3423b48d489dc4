import {
  projection,
  type Activation,
  type AttentionSpec,
  type FeedForwardSpec,
  type LayerSpec,
  type PositionScheme,
} from '../decoder/decoder.ts'
import { rmsNorm, type FamilyDecoder } from './family.ts'
import type { LlamaConfig } from './llama-config.ts'

/** Where a family departs from Llama. */
export type LlamaOptions = {
  /** Biases of the query, key and value projections, and of the output projection. */
  readonly attentionBias?: boolean
  readonly outputBias?: boolean
  readonly mlpBias?: boolean
  readonly activation?: Activation
  /** Norms of queries and keys. */
  readonly headNorms?: 'head' | 'all'
  readonly attentionScale?: number
  readonly attentionSoftcap?: number
  readonly logitSoftcap?: number
  readonly embeddingScale?: number
  /** Added to the weights of all norms. */
  readonly normPlus?: number
  /** Norms on what attention and feed-forward add, as Gemma 2 names them. */
  readonly postNorms?: boolean
  /** Tokens that a layer sees; 0 = all. */
  readonly window?: (layer: number) => number
  readonly positions?: (layer: number) => PositionScheme
  readonly feedForward?: (layer: number) => FeedForwardSpec | null
  /** Replaces the projections of a layer that has them fused. */
  readonly projections?: (layer: number) => Pick<AttentionSpec, 'query' | 'key' | 'value'>
}

const EMBEDDING = 'model.embed_tokens.weight'

/** A decoder with Llama's parts and tensor names, apart from what `options` say. */
export function llamaDecoder(config: LlamaConfig, options: LlamaOptions = {}): FamilyDecoder {
  const { hiddenSize, headCount, kvHeadCount, headSize, vocabSize, contextLength } = config
  const { normEpsilon, normPlus = 0 } = { ...config, ...options }
  const tied = config.tiedEmbedding
  return {
    hiddenSize,
    headCount,
    kvHeadCount,
    headSize,
    vocabSize,
    contextLength,
    embedding: {
      source: EMBEDDING,
      scale: options.embeddingScale ?? 1,
      positions: null,
      norm: null,
    },
    layers: Array.from({ length: config.layerCount }, (_, layer) =>
      llamaLayer(config, layer, options),
    ),
    finalNorm: rmsNorm('model.norm', hiddenSize, normEpsilon, normPlus),
    head: {
      source: tied ? EMBEDDING : 'lm_head.weight',
      bias: null,
      softcap: options.logitSoftcap ?? 0,
      tied,
    },
  }
}

function llamaLayer(config: LlamaConfig, layer: number, options: LlamaOptions): LayerSpec {
  const { hiddenSize, normEpsilon } = config
  const name = `model.layers.${layer}`
  const norm = (part: string): ReturnType<typeof rmsNorm> =>
    rmsNorm(`${name}.${part}`, hiddenSize, normEpsilon, options.normPlus ?? 0)
  const hasPost = options.postNorms === true
  return {
    attentionNorm: norm('input_layernorm'),
    attention: llamaAttention(config, layer, options),
    attentionPostNorm: hasPost ? norm('post_attention_layernorm') : null,
    order: 'sequential',
    feedForwardNorm: norm(hasPost ? 'pre_feedforward_layernorm' : 'post_attention_layernorm'),
    feedForward:
      options.feedForward?.(layer) ??
      gatedMlp(`${name}.mlp`, config, {
        bias: options.mlpBias === true,
        activation: options.activation ?? 'silu',
      }),
    feedForwardPostNorm: hasPost ? norm('post_feedforward_layernorm') : null,
  }
}

function llamaAttention(config: LlamaConfig, layer: number, options: LlamaOptions): AttentionSpec {
  const { hiddenSize, headCount, kvHeadCount, headSize, normEpsilon } = config
  const name = `model.layers.${layer}.self_attn`
  const bias = options.attentionBias === true
  const project = (part: string, heads: number): AttentionSpec['query'] =>
    projection(`${name}.${part}`, heads * headSize, hiddenSize, { bias })
  const scope = options.headNorms
  const headNorm = (part: string, heads: number): ReturnType<typeof rmsNorm> => {
    const size = scope === 'all' ? heads * headSize : headSize
    return rmsNorm(`${name}.${part}`, size, normEpsilon, options.normPlus ?? 0)
  }
  return {
    ...(options.projections?.(layer) ?? {
      query: project('q_proj', headCount),
      key: project('k_proj', kvHeadCount),
      value: project('v_proj', kvHeadCount),
    }),
    output: projection(`${name}.o_proj`, hiddenSize, headCount * headSize, {
      bias: options.outputBias === true,
    }),
    headNorms:
      scope === undefined
        ? null
        : { query: headNorm('q_norm', headCount), key: headNorm('k_norm', kvHeadCount), scope },
    scale: options.attentionScale ?? 1 / Math.sqrt(headSize),
    softcap: options.attentionSoftcap ?? 0,
    window: options.window?.(layer) ?? 0,
    positions: options.positions?.(layer) ?? { kind: 'rope', rope: config.rope },
  }
}

/** Llama's gated feed-forward under a name. */
export function gatedMlp(
  name: string,
  sizes: { readonly hiddenSize: number; readonly intermediateSize: number },
  options: { readonly bias: boolean; readonly activation: Activation },
): FeedForwardSpec & { kind: 'gated' } {
  const { hiddenSize, intermediateSize } = sizes
  const { bias, activation } = options
  return {
    kind: 'gated',
    gate: projection(`${name}.gate_proj`, intermediateSize, hiddenSize, { bias }),
    up: projection(`${name}.up_proj`, intermediateSize, hiddenSize, { bias }),
    down: projection(`${name}.down_proj`, hiddenSize, intermediateSize, { bias }),
    activation,
  }
}
