import { projection, slice, type AttentionSpec, type FeedForwardSpec } from '../decoder/decoder.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { activationOf, contextOf, requireValue, windowOf, type Family } from './family.ts'
import { LLAMA_DEFAULTS, llamaConfig, type LlamaConfig } from './llama-config.ts'
import { llamaDecoder } from './llama-decoder.ts'
import { ropeFields } from './rope-fields.ts'

/** Phi-3 and Phi-4-mini (arXiv 2404.14219): Llama with fused projections, a window and LongRoPE. */
export const PHI3: Family = {
  modelType: 'phi3',
  architecture: 'Phi3ForCausalLM',
  defaults: {
    ...LLAMA_DEFAULTS,
    max_position_embeddings: 4096,
    original_max_position_embeddings: 4096,
    partial_rotary_factor: 1,
    rms_norm_eps: 1e-5,
    eos_token_id: 32_000,
    sliding_window: null,
  },
  nullable: ['eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    const config = llamaConfig(fields, contextLength, { partial: true })
    refuseYarn(fields)
    const window = windowOf(fields)
    const activation = activationOf(fields, 'hidden_act')
    return llamaDecoder(config, {
      window: () => window,
      projections: (layer) => fusedProjections(config, layer),
      feedForward: (layer) => fusedMlp(config, layer, activation),
    })
  },
}

/** The first files called LongRoPE so. */
function refuseYarn(fields: JsonFields): void {
  const rope = ropeFields(fields)
  if (rope === null) return
  const kinds = ['default', 'linear', 'dynamic', 'llama3', 'longrope', 'su']
  for (const name of ['rope_type', 'type']) requireValue(rope, name, kinds)
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
