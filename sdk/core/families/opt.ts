import { projection, type LayerSpec, type Projection } from '../decoder/decoder.ts'
import type { JsonFields } from '../model/json-fields.ts'
import {
  activationOf,
  checkHeads,
  contextOf,
  flag,
  headOf,
  layerCountOf,
  layerNorm,
  requireValue,
  sizeOf,
  vocabOf,
  type Family,
} from './family.ts'

const EMBEDDING = 'model.decoder.embed_tokens.weight'
/** The position table has two rows before that of the first position. */
const POSITION_OFFSET = 2
const EPSILON = 1e-5

/** OPT (arXiv 2205.01068) with norms first, which is all sizes but 350m. */
export const OPT: Family = {
  modelType: 'opt',
  architecture: 'OPTForCausalLM',
  defaults: {
    max_position_embeddings: 2048,
    activation_function: 'relu',
    enable_bias: true,
    do_layer_norm_before: true,
    layer_norm_elementwise_affine: true,
    _remove_final_layer_norm: false,
    word_embed_proj_dim: null,
    tie_word_embeddings: true,
    eos_token_id: 2,
  },
  nullable: ['eos_token_id'],
  context: contextOf,
  describe(fields, contextLength) {
    const hiddenSize = sizeOf(fields, 'hidden_size')
    requireValue(fields, 'do_layer_norm_before', [true])
    requireValue(fields, 'word_embed_proj_dim', [hiddenSize])
    requireValue(fields, 'layer_norm_elementwise_affine', [true])
    requireValue(fields, '_remove_final_layer_norm', [false])
    const headCount = sizeOf(fields, 'num_attention_heads')
    const headSize = hiddenSize / headCount
    const heads = checkHeads({ headCount, kvHeadCount: headCount, headSize })
    return {
      ...heads,
      hiddenSize,
      vocabSize: vocabOf(fields),
      contextLength,
      embedding: {
        source: EMBEDDING,
        scale: 1,
        positions: {
          source: 'model.decoder.embed_positions.weight',
          rows: contextOf(fields) + POSITION_OFFSET,
          offset: POSITION_OFFSET,
        },
        norm: null,
      },
      layers: Array.from({ length: layerCountOf(fields) }, (_, layer) =>
        optLayer(fields, layer, { hidden: hiddenSize, headSize: heads.headSize }),
      ),
      finalNorm: layerNorm('model.decoder.final_layer_norm', hiddenSize, EPSILON),
      head: headOf(fields, EMBEDDING),
    }
  },
}

function optLayer(
  fields: JsonFields,
  layer: number,
  { hidden, headSize }: { readonly hidden: number; readonly headSize: number },
): LayerSpec {
  const name = `model.decoder.layers.${layer}`
  const bias = flag(fields, 'enable_bias')
  const inner = sizeOf(fields, 'ffn_dim')
  const project = (part: string): Projection =>
    projection(`${name}.self_attn.${part}`, hidden, hidden, { bias })
  return {
    attentionNorm: layerNorm(`${name}.self_attn_layer_norm`, hidden, EPSILON),
    attention: {
      query: project('q_proj'),
      key: project('k_proj'),
      value: project('v_proj'),
      output: project('out_proj'),
      headNorms: null,
      scale: 1 / Math.sqrt(headSize),
      softcap: 0,
      window: 0,
      positions: { kind: 'none' },
    },
    attentionPostNorm: null,
    order: 'sequential',
    feedForwardNorm: layerNorm(`${name}.final_layer_norm`, hidden, EPSILON),
    feedForward: {
      kind: 'plain',
      up: projection(`${name}.fc1`, inner, hidden, { bias }),
      down: projection(`${name}.fc2`, hidden, inner, { bias }),
      activation: activationOf(fields, 'activation_function'),
    },
    feedForwardPostNorm: null,
  }
}
