import { CrowdError } from '../errors.ts'
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
import { llamaDecoder } from './llama-decoder.ts'

/** SmolLM3: Llama, but some layers don't rotate (NoPE, arXiv 2501.18795). */
export const SMOLLM3: Family = {
  modelType: 'smollm3',
  architecture: 'SmolLM3ForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength, { tied: true })
    const bias = flag(fields, 'attention_bias', false)
    const rotates = rotatingLayers(fields, config)
    const windowed = windowedLayers(fields, config.layerCount)
    const isOn = flag(fields, 'use_sliding_window', false) && fields.has('sliding_window')
    const window = isOn ? sizeOf(fields, 'sliding_window') : 0
    return llamaDecoder(config, {
      attentionBias: bias,
      outputBias: bias,
      mlpBias: flag(fields, 'mlp_bias', false),
      activation: activationOf(fields, 'hidden_act', 'silu'),
      window: (layer) => (windowed?.[layer] === true ? window : 0),
      positions: (layer) =>
        rotates[layer] === true ? { kind: 'rope', rope: config.rope } : { kind: 'none' },
    })
  },
}

/** `no_rope_layers` holds 1 where a layer rotates; otherwise every fourth doesn't. */
function rotatingLayers(fields: JsonFields, { layerCount }: LlamaConfig): boolean[] {
  if (!fields.has('no_rope_layers')) {
    const interval = numberOr(fields, 'no_rope_layer_interval', 4)
    return Array.from({ length: layerCount }, (_, layer) => (layer + 1) % interval !== 0)
  }
  const list = fields.array('no_rope_layers')
  if (list.length === layerCount) return list.map((value) => value === 1)
  throw new CrowdError(
    'model-invalid',
    `config.json: "no_rope_layers" names ${list.length} layers, not ${layerCount}.`,
  )
}
