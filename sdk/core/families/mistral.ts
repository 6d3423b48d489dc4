import { activationOf, contextOf, windowOf, type Family } from './family.ts'
import { layerWindows } from './layer-windows.ts'
import { LLAMA_DEFAULTS, llamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'

/** Mistral 7B and Ministral (arXiv 2310.06825): Llama with a window, in Ministral in the layers that the file names. */
export const MISTRAL: Family = {
  modelType: 'mistral',
  architecture: 'MistralForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    num_key_value_heads: 8,
    max_position_embeddings: 131_072,
    eos_token_id: 2,
    sliding_window: 4096,
  },
  nullable: ['sliding_window', 'eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const windows = layerWindows(fields, config.layerCount, () => windowOf(fields) > 0)
    return llamaDecoder(config, {
      activation: activationOf(fields, 'hidden_act'),
      window: (layer) => windows[layer] ?? 0,
    })
  },
}
