import { CrowdError } from '../errors.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { activationOf, contextOf, flag, sizeOf, windowOf, type Family } from './family.ts'
import { layerWindows, refuseWindows } from './layer-windows.ts'
import { LLAMA_DEFAULTS, llamaConfig, type LlamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'
import { perLayer } from './per-layer.ts'

/** SmolLM3: Llama, but some layers don't rotate (NoPE, arXiv 2501.18795). */
export const SMOLLM3: Family = {
  modelType: 'smollm3',
  architecture: 'SmolLM3ForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    num_key_value_heads: 4,
    max_position_embeddings: 32_768,
    rope_theta: 2_000_000,
    tie_word_embeddings: true,
    eos_token_id: 128_001,
    attention_bias: false,
    mlp_bias: false,
    use_sliding_window: false,
    sliding_window: null,
    layer_types: null,
    no_rope_layers: null,
    no_rope_layer_interval: 4,
  },
  nullable: ['num_key_value_heads', 'eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const bias = flag(fields, 'attention_bias')
    const rotates = rotatingLayers(fields, config)
    const isOn = flag(fields, 'use_sliding_window')
    if (!isOn) refuseWindows(fields, config.layerCount)
    const hasWindow = isOn && windowOf(fields) > 0
    const windows = layerWindows(fields, config.layerCount, (layer) => hasWindow && !rotates[layer])
    return llamaDecoder(config, {
      attentionBias: bias,
      outputBias: bias,
      mlpBias: flag(fields, 'mlp_bias'),
      activation: activationOf(fields, 'hidden_act'),
      window: (layer) => windows[layer] ?? 0,
      positions: (layer) =>
        rotates[layer] === true ? { kind: 'rope', rope: config.rope } : { kind: 'none' },
    })
  },
}

/** `no_rope_layers` holds 1 where a layer rotates; otherwise every fourth doesn't. */
function rotatingLayers(fields: JsonFields, { layerCount }: LlamaConfig): boolean[] {
  if (!fields.has('no_rope_layers')) {
    const interval = sizeOf(fields, 'no_rope_layer_interval')
    return Array.from({ length: layerCount }, (_, layer) => (layer + 1) % interval !== 0)
  }
  return perLayer(fields, 'no_rope_layers', layerCount).map((value) => {
    if (value === 0 || value === 1) return value === 1
    throw new CrowdError(
      'model-invalid',
      `config.json: "no_rope_layers" holds ${JSON.stringify(value)}; it must hold 0 and 1.`,
    )
  })
}
