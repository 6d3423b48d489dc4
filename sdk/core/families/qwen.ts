import type { JsonFields } from '../model/json-fields.ts'
import { activationOf, contextOf, flag, windowOf, type Family } from './family.ts'
import { layerWindows, refuseWindows } from './layer-windows.ts'
import { LLAMA_DEFAULTS, llamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'

const QWEN2_DEFAULTS = {
  ...LLAMA_DEFAULTS,
  num_key_value_heads: 32,
  max_position_embeddings: 32_768,
  use_sliding_window: false,
  sliding_window: 4096,
  max_window_layers: 28,
  layer_types: null,
}
const NULLABLE = ['num_key_value_heads', 'sliding_window']

/** Qwen 1.5, 2 and 2.5 (arXiv 2407.10671): Llama with biases on queries, keys and values. */
export const QWEN2: Family = {
  modelType: 'qwen2',
  architecture: 'Qwen2ForCausalLM',
  defaults: QWEN2_DEFAULTS,
  nullable: NULLABLE,
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const windows = qwenWindows(fields, config.layerCount)
    return llamaDecoder(config, {
      attentionBias: true,
      activation: activationOf(fields, 'hidden_act'),
      window: (layer) => windows[layer] ?? 0,
    })
  },
}

/** Qwen3 (arXiv 2505.09388): no biases, norms on the heads of queries and keys. */
export const QWEN3: Family = {
  modelType: 'qwen3',
  architecture: 'Qwen3ForCausalLM',
  defaults: { ...QWEN2_DEFAULTS, head_dim: 128, attention_bias: false },
  nullable: NULLABLE,
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const bias = flag(fields, 'attention_bias')
    const windows = qwenWindows(fields, config.layerCount)
    return llamaDecoder(config, {
      attentionBias: bias,
      outputBias: bias,
      headNorms: 'head',
      activation: activationOf(fields, 'hidden_act'),
      window: (layer) => windows[layer] ?? 0,
    })
  },
}

/** Off unless asked for; then the layers from `max_window_layers` on have it. */
function qwenWindows(fields: JsonFields, layerCount: number): number[] {
  const isOn = flag(fields, 'use_sliding_window')
  const first = fields.number('max_window_layers')
  const hasWindow = isOn && windowOf(fields) > 0
  if (!isOn) refuseWindows(fields, layerCount)
  return layerWindows(fields, layerCount, (layer) => hasWindow && layer >= first)
}
