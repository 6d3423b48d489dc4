import { projection, type FeedForwardSpec, type GatedSpec } from '../decoder/decoder.ts'
import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  contextOf,
  flag,
  requireValue,
  sizeOf,
  windowOf,
  type Family,
} from './family.ts'
import { LLAMA_DEFAULTS, llamaConfig, type LlamaConfig } from './llama-config.ts'
import { gatedMlp, llamaDecoder } from './llama-decoder.ts'

/** Mixtral (arXiv 2401.04088): Mistral whose feed-forward is a choice of experts. */
export const MIXTRAL: Family = {
  modelType: 'mixtral',
  architecture: 'MixtralForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-5,
    rope_theta: 1_000_000,
    eos_token_id: 2,
    sliding_window: null,
    num_experts_per_tok: 2,
  },
  nullable: ['eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const window = windowOf(fields)
    const activation = activationOf(fields, 'hidden_act')
    const { hiddenSize: hidden, intermediateSize: inner } = config
    const expert = (name: string): GatedSpec => ({
      gate: projection(`${name}.w1`, inner, hidden),
      up: projection(`${name}.w3`, inner, hidden),
      down: projection(`${name}.w2`, hidden, inner),
      activation,
    })
    return llamaDecoder(config, {
      window: () => window,
      feedForward: (layer) =>
        expertsOf(`model.layers.${layer}.block_sparse_moe`, expert, {
          hidden,
          count: sizeOf(fields, 'num_local_experts'),
          top: sizeOf(fields, 'num_experts_per_tok'),
          normalise: true,
        }),
    })
  },
}

/** Qwen3-MoE (arXiv 2505.09388). With a window all layers have it; no field says which. */
export const QWEN3_MOE: Family = {
  modelType: 'qwen3_moe',
  architecture: 'Qwen3MoeForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    num_key_value_heads: 4,
    max_position_embeddings: 32_768,
    attention_bias: false,
    use_sliding_window: false,
    sliding_window: 4096,
    decoder_sparse_step: 1,
    mlp_only_layers: null,
    num_experts_per_tok: 8,
    norm_topk_prob: false,
  },
  nullable: ['sliding_window'],
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const bias = flag(fields, 'attention_bias')
    const window = flag(fields, 'use_sliding_window') ? windowOf(fields) : 0
    const isSparse = sparseLayers(fields)
    return llamaDecoder(config, {
      attentionBias: bias,
      outputBias: bias,
      headNorms: 'head',
      activation: activationOf(fields, 'hidden_act'),
      window: () => window,
      feedForward: (layer) =>
        isSparse(layer)
          ? expertMlp(fields, config, layer, {
              inner: sizeOf(fields, 'moe_intermediate_size'),
              normalise: flag(fields, 'norm_topk_prob'),
            })
          : null,
    })
  },
}

/** OLMoE (arXiv 2409.02060): norms over all heads of queries and keys at once. */
export const OLMOE: Family = {
  modelType: 'olmoe',
  architecture: 'OlmoeForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-5,
    eos_token_id: 50_279,
    attention_bias: false,
    clip_qkv: null,
    num_experts_per_tok: 8,
    norm_topk_prob: false,
  },
  nullable: ['eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    requireValue(fields, 'clip_qkv', [])
    requireValue(fields, 'sliding_window', [])
    const config = llamaConfig(fields, contextLength)
    const bias = flag(fields, 'attention_bias')
    return llamaDecoder(config, {
      attentionBias: bias,
      outputBias: bias,
      headNorms: 'all',
      feedForward: (layer) =>
        expertMlp(fields, config, layer, {
          inner: config.intermediateSize,
          normalise: flag(fields, 'norm_topk_prob'),
        }),
    })
  },
}

/** Qwen's rule: every `decoder_sparse_step`th layer, apart from `mlp_only_layers`. */
function sparseLayers(fields: JsonFields): (layer: number) => boolean {
  const step = sizeOf(fields, 'decoder_sparse_step')
  const dense = new Set(fields.has('mlp_only_layers') ? fields.array('mlp_only_layers') : [])
  return (layer) => !dense.has(layer) && (layer + 1) % step === 0
}

function expertMlp(
  fields: JsonFields,
  { hiddenSize: hidden }: LlamaConfig,
  layer: number,
  options: { readonly inner: number; readonly normalise: boolean },
): FeedForwardSpec {
  const sizes = { hiddenSize: hidden, intermediateSize: options.inner }
  const activation = activationOf(fields, 'hidden_act')
  return expertsOf(
    `model.layers.${layer}.mlp`,
    (name) => gatedMlp(name, sizes, { bias: false, activation }),
    {
      hidden,
      count: sizeOf(fields, 'num_experts', 'num_local_experts'),
      top: sizeOf(fields, 'num_experts_per_tok'),
      normalise: options.normalise,
    },
  )
}

function expertsOf(
  name: string,
  expert: (name: string) => GatedSpec,
  options: {
    readonly hidden: number
    readonly count: number
    readonly top: number
    readonly normalise: boolean
  },
): FeedForwardSpec {
  const { hidden, count, top, normalise } = options
  return {
    kind: 'experts',
    router: projection(`${name}.gate`, count, hidden),
    experts: Array.from({ length: count }, (_, e) => expert(`${name}.experts.${e}`)),
    top: Math.min(top, count),
    normalise,
  }
}
