import {
  projection,
  slice,
  type Decoder,
  type LayerSpec,
  type Projection,
} from '../decoder/decoder.ts'
import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  checkHeads,
  contextOf,
  headOf,
  layerCountOf,
  layerNorm,
  requireValue,
  sizeOf,
  vocabOf,
  type Family,
} from './family.ts'

const EMBEDDING = 'transformer.wte.weight'

/** GPT-2 and DistilGPT-2: learned positions, plain feed-forward, matrices stored by columns. */
export const GPT2: Family = {
  modelType: 'gpt2',
  architecture: 'GPT2LMHeadModel',
  defaults: {
    n_positions: 1024,
    n_inner: null,
    layer_norm_epsilon: 1e-5,
    activation_function: 'gelu_new',
    tie_word_embeddings: true,
    eos_token_id: 50_256,
    scale_attn_weights: true,
    scale_attn_by_inverse_layer_idx: false,
    add_cross_attention: false,
  },
  nullable: ['eos_token_id'],
  context: (fields) => contextOf(fields, 'n_positions'),
  describe(fields, contextLength) {
    requireValue(fields, 'scale_attn_by_inverse_layer_idx', [false])
    requireValue(fields, 'scale_attn_weights', [true])
    requireValue(fields, 'add_cross_attention', [false])
    const hiddenSize = sizeOf(fields, 'n_embd')
    const heads = sizeOf(fields, 'n_head')
    const headSize = hiddenSize / heads
    const epsilon = fields.number('layer_norm_epsilon')
    const layerCount = layerCountOf(fields, 'n_layer')
    const sizes = { ...checkHeads({ headCount: heads, kvHeadCount: heads, headSize }), hiddenSize }
    return {
      ...sizes,
      vocabSize: vocabOf(fields),
      contextLength,
      embedding: {
        source: EMBEDDING,
        scale: 1,
        positions: {
          source: 'transformer.wpe.weight',
          rows: contextOf(fields, 'n_positions'),
          offset: 0,
        },
        norm: null,
      },
      layers: Array.from({ length: layerCount }, (_, layer) =>
        gpt2Layer(fields, layer, { ...sizes, epsilon }),
      ),
      finalNorm: layerNorm('transformer.ln_f', hiddenSize, epsilon),
      head: headOf(fields, EMBEDDING),
    }
  },
}

type Sizes = Pick<Decoder, 'hiddenSize' | 'headSize'> & { readonly epsilon: number }

function gpt2Layer(fields: JsonFields, layer: number, sizes: Sizes): LayerSpec {
  const { hiddenSize: hidden, headSize, epsilon } = sizes
  const name = `transformer.h.${layer}`
  const inner = fields.has('n_inner') ? sizeOf(fields, 'n_inner') : 4 * hidden
  const fused = byColumns(`${name}.attn.c_attn`, 3 * hidden, hidden)
  return {
    attentionNorm: layerNorm(`${name}.ln_1`, hidden, epsilon),
    attention: {
      query: slice(fused, 0, hidden),
      key: slice(fused, hidden, hidden),
      value: slice(fused, 2 * hidden, hidden),
      output: byColumns(`${name}.attn.c_proj`, hidden, hidden),
      headNorms: null,
      scale: 1 / Math.sqrt(headSize),
      softcap: 0,
      window: 0,
      positions: { kind: 'none' },
    },
    attentionPostNorm: null,
    order: 'sequential',
    feedForwardNorm: layerNorm(`${name}.ln_2`, hidden, epsilon),
    feedForward: {
      kind: 'plain',
      up: byColumns(`${name}.mlp.c_fc`, inner, hidden),
      down: byColumns(`${name}.mlp.c_proj`, hidden, inner),
      activation: activationOf(fields, 'activation_function'),
    },
    feedForwardPostNorm: null,
  }
}

function byColumns(name: string, rows: number, columns: number): Projection {
  const plain = projection(name, rows, columns, { bias: true })
  return { ...plain, matrix: { ...plain.matrix, stored: 'columns' } }
}
