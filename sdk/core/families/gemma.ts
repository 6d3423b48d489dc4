import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  contextOf,
  flag,
  numberOr,
  requireValue,
  sizeOf,
  type Family,
} from './family.ts'
import { layerWindows } from './layer-windows.ts'
import { llamaConfig, type LlamaConfig } from './llama-config.ts'
import { llamaDecoder, type LlamaOptions } from './llama-decoder.ts'
import { parseRope } from './parse-rope.ts'

const GEMMA_DEFAULTS = {
  num_key_value_heads: 4,
  head_dim: 256,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  eos_token_id: 1,
  hidden_activation: 'gelu_pytorch_tanh',
  attention_bias: false,
  query_pre_attn_scalar: 256,
  sliding_window: 4096,
  layer_types: null,
}
/** Without a window the models can't be run; without a soft-cap they can. */
const NULLABLE = ['eos_token_id', 'attn_logit_softcapping', 'final_logit_softcapping']

/** Gemma 2 (arXiv 2408.00118): norms before and after each half, soft-caps, a window in every other layer. */
export const GEMMA2: Family = {
  modelType: 'gemma2',
  architecture: 'Gemma2ForCausalLM',
  defaults: {
    ...GEMMA_DEFAULTS,
    max_position_embeddings: 8192,
    attn_logit_softcapping: 50,
    final_logit_softcapping: 30,
    use_bidirectional_attention: null,
  },
  nullable: NULLABLE,
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const windows = layerWindows(fields, config.layerCount, (layer) => layer % 2 === 0)
    return llamaDecoder(config, {
      ...gemmaOptions(fields, config),
      window: (layer) => windows[layer] ?? 0,
    })
  },
}

/**
 * Gemma 3, text only (arXiv 2503.19786): norms on the heads of queries and keys; five of six layers see a
 * window and have a rotation of their own. Published files of the larger models say little more than the sizes.
 */
export const GEMMA3: Family = {
  modelType: 'gemma3_text',
  architecture: 'Gemma3ForCausalLM',
  defaults: {
    ...GEMMA_DEFAULTS,
    vocab_size: 262_208,
    num_attention_heads: 8,
    max_position_embeddings: 131_072,
    rope_theta: 1_000_000,
    rope_local_base_freq: 10_000,
    sliding_window_pattern: 6,
    attn_logit_softcapping: null,
    final_logit_softcapping: null,
    use_bidirectional_attention: false,
  },
  nullable: [...NULLABLE, 'use_bidirectional_attention'],
  ropeLayer: 'full_attention',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength, { layerType: 'full_attention' })
    // Where the file names the layers, the pattern doesn't count.
    const pattern = sizeOf(fields, 'sliding_window_pattern')
    const windows = layerWindows(fields, config.layerCount, (layer) => (layer + 1) % pattern !== 0)
    const local = parseRope(fields, {
      headSize: config.headSize,
      contextLength,
      layerType: 'sliding_attention',
      thetaName: 'rope_local_base_freq',
    })
    const window = (layer: number): number => windows[layer] ?? 0
    return llamaDecoder(config, {
      ...gemmaOptions(fields, config),
      headNorms: 'head',
      window,
      positions: (layer) => ({ kind: 'rope', rope: window(layer) > 0 ? local : config.rope }),
    })
  },
}

function gemmaOptions(fields: JsonFields, { hiddenSize }: LlamaConfig): LlamaOptions {
  requireValue(fields, 'use_bidirectional_attention', [false])
  const bias = flag(fields, 'attention_bias')
  return {
    attentionBias: bias,
    outputBias: bias,
    activation: activationOf(fields, 'hidden_activation'),
    attentionScale: fields.number('query_pre_attn_scalar') ** -0.5,
    attentionSoftcap: numberOr(fields, 'attn_logit_softcapping', 0),
    logitSoftcap: numberOr(fields, 'final_logit_softcapping', 0),
    embeddingScale: Math.sqrt(hiddenSize),
    normPlus: 1,
    postNorms: true,
  }
}
