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
import { llamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'

/** Qwen 1.5, 2 and 2.5 (arXiv 2407.10671): Llama with biases on queries, keys and values. */
export const QWEN2: Family = {
  modelType: 'qwen2',
  architecture: 'Qwen2ForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    return llamaDecoder(config, {
      attentionBias: true,
      activation: activationOf(fields, 'hidden_act', 'silu'),
      window: qwenWindow(fields, config.layerCount),
    })
  },
}

/** Qwen3 (arXiv 2505.09388): no biases, norms on the heads of queries and keys. */
export const QWEN3: Family = {
  modelType: 'qwen3',
  architecture: 'Qwen3ForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const bias = flag(fields, 'attention_bias', false)
    return llamaDecoder(config, {
      attentionBias: bias,
      outputBias: bias,
      headNorms: 'head',
      activation: activationOf(fields, 'hidden_act', 'silu'),
      window: qwenWindow(fields, config.layerCount),
    })
  },
}

/** Off unless asked for; then the layers from `max_window_layers` on have it. */
export function qwenWindow(fields: JsonFields, layerCount: number): (layer: number) => number {
  const isOn = flag(fields, 'use_sliding_window', false) && fields.has('sliding_window')
  if (!isOn) return () => 0
  const window = sizeOf(fields, 'sliding_window')
  const windowed = windowedLayers(fields, layerCount)
  const first = numberOr(fields, 'max_window_layers', 28)
  return (layer) => ((windowed?.[layer] ?? layer >= first) ? window : 0)
}
