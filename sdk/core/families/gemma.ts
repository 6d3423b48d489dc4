import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  contextOf,
  flag,
  numberOr,
  sizeOf,
  windowedLayers,
  type Family,
} from './family.ts'
import { llamaConfig, type LlamaConfig } from './llama-config.ts'
import { llamaDecoder, type LlamaOptions } from './llama-decoder.ts'
import { parseRope } from './parse-rope.ts'

/** Gemma 2 (arXiv 2408.00118): norms before and after each half, soft-caps, a window in every other layer. */
export const GEMMA2: Family = {
  modelType: 'gemma2',
  architecture: 'Gemma2ForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength, { tied: true })
    const isWindowed = windowedLayers(fields, config.layerCount)
    const window = sizeOf(fields, 'sliding_window')
    return llamaDecoder(config, {
      ...gemmaOptions(fields, config),
      attentionSoftcap: numberOr(fields, 'attn_logit_softcapping', 0),
      logitSoftcap: numberOr(fields, 'final_logit_softcapping', 0),
      window: (layer) => ((isWindowed?.[layer] ?? layer % 2 === 0) ? window : 0),
    })
  },
}

/**
 * Gemma 3, text only (arXiv 2503.19786): norms on the heads of queries and keys; five of six layers see a
 * window and have a rotation of their own.
 */
export const GEMMA3: Family = {
  modelType: 'gemma3_text',
  architecture: 'Gemma3ForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength, {
      tied: true,
      layerType: 'full_attention',
    })
    const isWindowed = gemma3Windows(fields, config.layerCount)
    const window = sizeOf(fields, 'sliding_window')
    const local = localRope(fields, config)
    return llamaDecoder(config, {
      ...gemmaOptions(fields, config),
      headNorms: 'head',
      attentionSoftcap: numberOr(fields, 'attn_logit_softcapping', 0),
      logitSoftcap: numberOr(fields, 'final_logit_softcapping', 0),
      window: (layer) => (isWindowed[layer] === true ? window : 0),
      positions: (layer) => ({
        kind: 'rope',
        rope: isWindowed[layer] === true ? local : config.rope,
      }),
    })
  },
}

function gemmaOptions(fields: JsonFields, { hiddenSize, headSize }: LlamaConfig): LlamaOptions {
  const bias = flag(fields, 'attention_bias', false)
  return {
    attentionBias: bias,
    outputBias: bias,
    activation: activationOf(fields, 'hidden_activation', 'gelu_pytorch_tanh'),
    attentionScale: numberOr(fields, 'query_pre_attn_scalar', headSize) ** -0.5,
    embeddingScale: Math.sqrt(hiddenSize),
    normPlus: 1,
    postNorms: true,
  }
}

/** All but every sixth layer, unless the file says otherwise. */
function gemma3Windows(fields: JsonFields, layerCount: number): boolean[] {
  const pattern = numberOr(fields, 'sliding_window_pattern', 6)
  return (
    windowedLayers(fields, layerCount) ??
    Array.from({ length: layerCount }, (_, layer) => (layer + 1) % pattern !== 0)
  )
}

function localRope(fields: JsonFields, config: LlamaConfig): LlamaConfig['rope'] {
  const { headSize, contextLength } = config
  if (fields.has('rope_parameters')) {
    return parseRope(fields, { headSize, contextLength, layerType: 'sliding_attention' })
  }
  // Older files scale the rotation of the other layers only.
  const theta = numberOr(fields, 'rope_local_base_freq', 10_000)
  return { theta, size: headSize, scaling: { kind: 'none' } }
}
