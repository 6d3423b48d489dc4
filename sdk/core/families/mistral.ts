import { activationOf, contextOf, sizeOf, type Family } from './family.ts'
import { llamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'

/** Mistral 7B and Ministral (arXiv 2310.06825): Llama with a window. */
export const MISTRAL: Family = {
  modelType: 'mistral',
  architecture: 'MistralForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const window = fields.has('sliding_window') ? sizeOf(fields, 'sliding_window') : 0
    return llamaDecoder(llamaConfig(fields, contextLength), {
      activation: activationOf(fields, 'hidden_act', 'silu'),
      window: () => window,
    })
  },
}
