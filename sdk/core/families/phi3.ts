import { projection, slice, type AttentionSpec, type FeedForwardSpec } from '../decoder/decoder.ts'
import { activationOf, contextOf, sizeOf, type Family } from './family.ts'
import { llamaConfig, type LlamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'

/** Phi-3 and Phi-4-mini (arXiv 2404.14219): Llama with fused projections, a window and LongRoPE. */
export const PHI3: Family = {
  modelType: 'phi3',
  architecture: 'Phi3ForCausalLM',
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength)
    const window = fields.has('sliding_window') ? sizeOf(fields, 'sliding_window') : 0
    const activation = activationOf(fields, 'hidden_act', 'silu')
    return llamaDecoder(config, {
      window: () => window,
      projections: (layer) => fusedProjections(config, layer),
      feedForward: (layer) => fusedMlp(config, layer, activation),
    })
  },
}

/** Queries, keys and values lie one after another. */
function fusedProjections(
  config: LlamaConfig,
  layer: number,
): Pick<AttentionSpec, 'query' | 'key' | 'value'> {
  const { headCount, kvHeadCount, headSize, hiddenSize } = config
  const queries = headCount * headSize
  const keys = kvHeadCount * headSize
  const name = `model.layers.${layer}.self_attn.qkv_proj`
  const fused = projection(name, queries + 2 * keys, hiddenSize)
  return {
    query: slice(fused, 0, queries),
    key: slice(fused, queries, keys),
    value: slice(fused, queries + keys, keys),
  }
}

function fusedMlp(
  { hiddenSize, intermediateSize: inner }: LlamaConfig,
  layer: number,
  activation: (FeedForwardSpec & { kind: 'gated' })['activation'],
): FeedForwardSpec {
  const name = `model.layers.${layer}.mlp`
  const fused = projection(`${name}.gate_up_proj`, 2 * inner, hiddenSize)
  return {
    kind: 'gated',
    gate: slice(fused, 0, inner),
    up: slice(fused, inner, inner),
    down: projection(`${name}.down_proj`, hiddenSize, inner),
    activation,
  }
}
