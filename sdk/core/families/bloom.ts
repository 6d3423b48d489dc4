import { picked, projection, type LayerSpec } from '../decoder/decoder.ts'
import {
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

const EMBEDDING = 'transformer.word_embeddings.weight'

/** BLOOM (arXiv 2211.05100): ALiBi, a norm on the embedding, queries, keys and values interleaved by head. */
export const BLOOM: Family = {
  modelType: 'bloom',
  architecture: 'BloomForCausalLM',
  defaults: {
    // ALiBi sets no end, and the class has none; the models were trained on this many.
    seq_length: 2048,
    layer_norm_epsilon: 1e-5,
    tie_word_embeddings: true,
    eos_token_id: 2,
    apply_residual_connection_post_layernorm: false,
  },
  nullable: ['eos_token_id'],
  context: (fields) => contextOf(fields, 'seq_length'),
  describe(fields, contextLength) {
    requireValue(fields, 'apply_residual_connection_post_layernorm', [false])
    const hiddenSize = sizeOf(fields, 'hidden_size', 'n_embed')
    const headCount = sizeOf(fields, 'n_head', 'num_attention_heads')
    const headSize = hiddenSize / headCount
    const epsilon = fields.number('layer_norm_epsilon')
    const layers = layerCountOf(fields, fields.has('n_layer') ? 'n_layer' : 'num_hidden_layers')
    return {
      ...checkHeads({ headCount, kvHeadCount: headCount, headSize }),
      hiddenSize,
      vocabSize: vocabOf(fields),
      contextLength,
      embedding: {
        source: EMBEDDING,
        scale: 1,
        positions: null,
        norm: layerNorm('transformer.word_embeddings_layernorm', hiddenSize, epsilon),
      },
      layers: Array.from({ length: layers }, (_, layer) =>
        bloomLayer(layer, { hidden: hiddenSize, headSize, epsilon }),
      ),
      finalNorm: layerNorm('transformer.ln_f', hiddenSize, epsilon),
      head: headOf(fields, EMBEDDING),
    }
  },
}

function bloomLayer(
  layer: number,
  sizes: { readonly hidden: number; readonly headSize: number; readonly epsilon: number },
): LayerSpec {
  const { hidden, headSize, epsilon } = sizes
  const name = `transformer.h.${layer}`
  const bias = { bias: true }
  const fused = projection(`${name}.self_attention.query_key_value`, 3 * hidden, hidden, bias)
  const part = (index: number): typeof fused =>
    picked(fused, { first: index * headSize, run: headSize, stride: 3 * headSize }, hidden)
  return {
    attentionNorm: layerNorm(`${name}.input_layernorm`, hidden, epsilon),
    attention: {
      query: part(0),
      key: part(1),
      value: part(2),
      output: projection(`${name}.self_attention.dense`, hidden, hidden, bias),
      headNorms: null,
      scale: 1 / Math.sqrt(headSize),
      softcap: 0,
      window: 0,
      positions: { kind: 'alibi', scale: 1, rounded: false },
    },
    attentionPostNorm: null,
    order: 'sequential',
    feedForwardNorm: layerNorm(`${name}.post_attention_layernorm`, hidden, epsilon),
    feedForward: {
      kind: 'plain',
      up: projection(`${name}.mlp.dense_h_to_4h`, 4 * hidden, hidden, bias),
      down: projection(`${name}.mlp.dense_4h_to_h`, hidden, 4 * hidden, bias),
      activation: 'gelu-tanh',
    },
    feedForwardPostNorm: null,
  }
}
