import {
  picked,
  projection,
  slice,
  type AttentionSpec,
  type LayerSpec,
  type PositionScheme,
} from '../decoder/decoder.ts'
import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  checkHeads,
  contextOf,
  flag,
  headOf,
  layerCountOf,
  layerNorm,
  numberOr,
  sizeOf,
  vocabOf,
  type Family,
  type Heads,
} from './family.ts'
import { parseRope } from './parse-rope.ts'

const EMBEDDING = 'transformer.word_embeddings.weight'

/** Falcon (arXiv 2311.16867): both halves of a layer side by side; rotary or ALiBi. */
export const FALCON: Family = {
  modelType: 'falcon',
  architecture: 'FalconForCausalLM',
  defaults: {
    max_position_embeddings: 2048,
    rope_theta: 10_000,
    layer_norm_epsilon: 1e-5,
    tie_word_embeddings: true,
    eos_token_id: 11,
    activation: 'gelu',
    alibi: false,
    bias: false,
    multi_query: true,
    parallel_attn: true,
    new_decoder_architecture: false,
    num_kv_heads: null,
    num_ln_in_parallel_attn: null,
    ffn_hidden_size: null,
  },
  // Switches that are null are off.
  nullable: [
    'alibi',
    'bias',
    'multi_query',
    'parallel_attn',
    'new_decoder_architecture',
    'eos_token_id',
  ],
  context: contextOf,
  describe(fields, contextLength) {
    const hiddenSize = sizeOf(fields, 'hidden_size', 'n_embed')
    const variant = variantOf(fields, hiddenSize)
    const { headSize } = variant.heads
    const positions: PositionScheme = flag(fields, 'alibi')
      ? // Scaled together with the scores.
        { kind: 'alibi', scale: 1 / Math.sqrt(headSize), rounded: true }
      : { kind: 'rope', rope: parseRope(fields, { headSize, contextLength }) }
    return {
      ...variant.heads,
      hiddenSize,
      vocabSize: vocabOf(fields),
      contextLength,
      embedding: { source: EMBEDDING, scale: 1, positions: null, norm: null },
      layers: Array.from({ length: layerCountOf(fields) }, (_, layer) =>
        falconLayer(fields, layer, { ...variant, hidden: hiddenSize, positions }),
      ),
      finalNorm: layerNorm('transformer.ln_f', hiddenSize, variant.epsilon),
      head: headOf(fields, EMBEDDING),
    }
  },
}

type Variant = {
  readonly heads: Heads
  /** 40B and 180B: key-value groups, one norm for each half. */
  readonly isNew: boolean
  readonly sharesOneKey: boolean
  readonly isParallel: boolean
  readonly hasTwoNorms: boolean
  readonly bias: boolean
  readonly epsilon: number
}

function variantOf(fields: JsonFields, hiddenSize: number): Variant {
  const headCount = sizeOf(fields, 'num_attention_heads')
  const isNew = flag(fields, 'new_decoder_architecture')
  const sharesOneKey = !isNew && flag(fields, 'multi_query')
  const own = fields.has('num_kv_heads') ? sizeOf(fields, 'num_kv_heads') : headCount
  const kvHeadCount = sharesOneKey ? 1 : own
  return {
    heads: checkHeads({ headCount, kvHeadCount, headSize: hiddenSize / headCount }),
    isNew,
    sharesOneKey,
    isParallel: isNew || flag(fields, 'parallel_attn'),
    hasTwoNorms: isNew && numberOr(fields, 'num_ln_in_parallel_attn', 2) === 2,
    bias: flag(fields, 'bias'),
    epsilon: fields.number('layer_norm_epsilon'),
  }
}

type LayerParts = Variant & { readonly hidden: number; readonly positions: PositionScheme }

function falconLayer(fields: JsonFields, layer: number, parts: LayerParts): LayerSpec {
  const { hidden, epsilon, isParallel, hasTwoNorms, heads, positions, bias } = parts
  const name = `transformer.h.${layer}`
  const inner = fields.has('ffn_hidden_size') ? sizeOf(fields, 'ffn_hidden_size') : 4 * hidden
  const norm = (part: string): ReturnType<typeof layerNorm> =>
    layerNorm(`${name}.${part}`, hidden, epsilon)
  return {
    attentionNorm: norm(hasTwoNorms ? 'ln_attn' : 'input_layernorm'),
    attention: {
      ...fusedProjections(`${name}.self_attention.query_key_value`, parts),
      output: projection(`${name}.self_attention.dense`, hidden, hidden, { bias }),
      headNorms: null,
      scale: 1 / Math.sqrt(heads.headSize),
      softcap: 0,
      window: 0,
      positions,
    },
    attentionPostNorm: null,
    feedForward: {
      kind: 'plain',
      up: projection(`${name}.mlp.dense_h_to_4h`, inner, hidden, { bias }),
      down: projection(`${name}.mlp.dense_4h_to_h`, hidden, inner, { bias }),
      activation: activationOf(fields, 'activation'),
    },
    feedForwardPostNorm: null,
    ...(isParallel
      ? { order: 'parallel', feedForwardNorm: hasTwoNorms ? norm('ln_mlp') : null }
      : { order: 'sequential', feedForwardNorm: norm('post_attention_layernorm') }),
  }
}

/** Queries of a group, then its key and its value; with one shared key there is one group. */
function fusedProjections(
  name: string,
  { heads, hidden, bias, sharesOneKey }: LayerParts,
): Pick<AttentionSpec, 'query' | 'key' | 'value'> {
  const { headCount, kvHeadCount, headSize } = heads
  const queries = headCount * headSize
  const keys = kvHeadCount * headSize
  const fused = projection(name, queries + 2 * keys, hidden, { bias })
  if (sharesOneKey) {
    return {
      query: slice(fused, 0, queries),
      key: slice(fused, queries, keys),
      value: slice(fused, queries + keys, keys),
    }
  }
  const run = (headCount / kvHeadCount) * headSize
  const stride = run + 2 * headSize
  return {
    query: picked(fused, { first: 0, run, stride }, queries),
    key: picked(fused, { first: run, run: headSize, stride }, keys),
    value: picked(fused, { first: run + headSize, run: headSize, stride }, keys),
  }
}
