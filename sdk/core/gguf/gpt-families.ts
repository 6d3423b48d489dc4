import { hasLayerTensor, type GgufFamily, type GgufSizes } from './family.ts'
import { groupedHeads, type Change } from './tensor-view.ts'

const NAMES = { output_norm: 'transformer.ln_f', output: 'lm_head' }
const LAYER_PREFIX = 'transformer.h.'

function layerNormEpsilon({ model, key }: GgufSizes): number {
  return model.metadata.number(key('attention.layer_norm_epsilon'))
}

/** GPT-2 and DistilGPT-2: Hugging Face stores the matrices of a layer by columns. */
export const GPT2: GgufFamily = {
  name: 'gpt2',
  names: { ...NAMES, token_embd: 'transformer.wte', position_embd: 'transformer.wpe' },
  layerPrefix: LAYER_PREFIX,
  layerNames: {
    attn_norm: 'ln_1',
    attn_qkv: 'attn.c_attn',
    attn_output: 'attn.c_proj',
    ffn_norm: 'ln_2',
    ffn_up: 'mlp.c_fc',
    ffn_down: 'mlp.c_proj',
  },
  change: (part): Change => ({
    kind: /^(attn_qkv|attn_output|ffn_up|ffn_down)$/.test(part) ? 'transposed' : 'none',
  }),
  config: (sizes) => ({
    model_type: 'gpt2',
    architectures: ['GPT2LMHeadModel'],
    n_embd: sizes.hidden,
    n_head: sizes.heads,
    n_layer: sizes.layers,
    n_inner: sizes.inner,
    n_positions: sizes.context,
    layer_norm_epsilon: layerNormEpsilon(sizes),
    activation_function: 'gelu_new',
  }),
}

const BLOCK_NAMES = {
  attn_norm: 'input_layernorm',
  attn_qkv: 'self_attention.query_key_value',
  attn_output: 'self_attention.dense',
  ffn_up: 'mlp.dense_h_to_4h',
  ffn_down: 'mlp.dense_4h_to_h',
}

/** Heads in Hugging Face's order: for each key-value head its queries, the key, the value. */
function regrouped(part: string, sizes: GgufSizes): Change {
  if (part !== 'attn_qkv') return { kind: 'none' }
  const { heads, kvHeads, headSize } = sizes
  return { kind: 'rows', sourceRow: groupedHeads(kvHeads, heads / kvHeads, headSize) }
}

export const BLOOM: GgufFamily = {
  name: 'bloom',
  names: {
    ...NAMES,
    token_embd: 'transformer.word_embeddings',
    token_embd_norm: 'transformer.word_embeddings_layernorm',
  },
  layerPrefix: LAYER_PREFIX,
  layerNames: { ...BLOCK_NAMES, ffn_norm: 'post_attention_layernorm' },
  change: regrouped,
  config: (sizes) => ({
    model_type: 'bloom',
    architectures: ['BloomForCausalLM'],
    hidden_size: sizes.hidden,
    n_head: sizes.heads,
    n_layer: sizes.layers,
    seq_length: sizes.context,
    layer_norm_epsilon: layerNormEpsilon(sizes),
  }),
}

/** Falcon; the larger ones have two norms in a layer, of which the file calls the first after the second half. */
export const FALCON: GgufFamily = {
  name: 'falcon',
  names: { ...NAMES, token_embd: 'transformer.word_embeddings' },
  layerPrefix: LAYER_PREFIX,
  layerNames: BLOCK_NAMES,
  change: regrouped,
  config(sizes) {
    const isNew = sizes.kvHeads > 1 || hasLayerTensor(sizes, 'attn_norm_2.weight')
    return {
      model_type: 'falcon',
      architectures: ['FalconForCausalLM'],
      hidden_size: sizes.hidden,
      num_attention_heads: sizes.heads,
      num_hidden_layers: sizes.layers,
      num_kv_heads: sizes.kvHeads,
      ffn_hidden_size: sizes.inner,
      max_position_embeddings: sizes.context,
      layer_norm_epsilon: layerNormEpsilon(sizes),
      new_decoder_architecture: isNew,
      multi_query: !isNew,
      num_ln_in_parallel_attn: hasLayerTensor(sizes, 'attn_norm_2.weight') ? 2 : 1,
      parallel_attn: true,
      alibi: false,
      bias: hasLayerTensor(sizes, 'attn_qkv.bias'),
    }
  },
}

/** Falcon with two norms in a layer. */
export const FALCON_TWO_NORMS: GgufFamily = {
  ...FALCON,
  layerNames: { ...BLOCK_NAMES, attn_norm: 'ln_mlp', attn_norm_2: 'ln_attn' },
}
