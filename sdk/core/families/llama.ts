import { activationOf, contextOf, flag, requireValue, type Family } from './family.ts'
import { LLAMA_DEFAULTS, llamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'

/** Llama 1 to 3, TinyLlama, SmolLM 1 and 2 (arXiv 2302.13971, 2407.21783). */
export const LLAMA: Family = {
  modelType: 'llama',
  architecture: 'LlamaForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    max_position_embeddings: 2048,
    eos_token_id: 2,
    attention_bias: false,
    mlp_bias: false,
  },
  nullable: ['eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    requireValue(fields, 'sliding_window', [])
    const bias = flag(fields, 'attention_bias')
    return llamaDecoder(llamaConfig(fields, contextLength), {
      attentionBias: bias,
      outputBias: bias,
      mlpBias: flag(fields, 'mlp_bias'),
      activation: activationOf(fields, 'hidden_act'),
    })
  },
}
