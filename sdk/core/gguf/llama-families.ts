import { hasLayerTensor, optionalNumber, type GgufFamily, type GgufSizes } from './family.ts'
import { interleavedHeads, type Change } from './tensor-view.ts'

const NAMES = { token_embd: 'model.embed_tokens', output_norm: 'model.norm', output: 'lm_head' }

const LAYER_NAMES = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
}

const HEAD_NORM_NAMES = { attn_q_norm: 'self_attn.q_norm', attn_k_norm: 'self_attn.k_norm' }

const EXPERT_NAMES = {
  ffn_gate_exps: 'mlp.experts.{}.gate_proj',
  ffn_up_exps: 'mlp.experts.{}.up_proj',
  ffn_down_exps: 'mlp.experts.{}.down_proj',
}

const SHARED = { names: NAMES, layerNames: LAYER_NAMES, layerPrefix: 'model.layers.' }

function interleaved(part: string, sizes: GgufSizes): Change {
  if (part !== 'attn_q' && part !== 'attn_k') return { kind: 'none' }
  return { kind: 'rows', sourceRow: interleavedHeads(sizes.headSize) }
}

function rmsConfig(sizes: GgufSizes, activation = 'silu'): Record<string, unknown> {
  const epsilon = sizes.model.metadata.number(sizes.key('attention.layer_norm_rms_epsilon'))
  return {
    hidden_size: sizes.hidden,
    intermediate_size: sizes.inner,
    num_hidden_layers: sizes.layers,
    num_attention_heads: sizes.heads,
    num_key_value_heads: sizes.kvHeads,
    head_dim: sizes.headSize,
    max_position_embeddings: sizes.context,
    rms_norm_eps: epsilon,
    hidden_act: activation,
  }
}

/** Llama, Mistral, SmolLM 1 and 2; with experts, Mixtral. */
export const LLAMA: GgufFamily = {
  ...SHARED,
  name: 'llama',
  layerNames: { ...LAYER_NAMES, ffn_gate_inp: 'block_sparse_moe.gate' },
  expertNames: {
    ffn_gate_exps: 'block_sparse_moe.experts.{}.w1',
    ffn_up_exps: 'block_sparse_moe.experts.{}.w3',
    ffn_down_exps: 'block_sparse_moe.experts.{}.w2',
  },
  change: interleaved,
  config(sizes) {
    const experts = optionalNumber(sizes, 'expert_count') ?? 0
    if (experts > 0) {
      return {
        ...rmsConfig(sizes),
        model_type: 'mixtral',
        architectures: ['MixtralForCausalLM'],
        num_local_experts: experts,
        num_experts_per_tok: sizes.model.metadata.count(sizes.key('expert_used_count')),
      }
    }
    return {
      ...rmsConfig(sizes),
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      attention_bias: hasLayerTensor(sizes, 'attn_q.bias'),
      mlp_bias: hasLayerTensor(sizes, 'ffn_up.bias'),
    }
  },
}

export const SMOLLM3: GgufFamily = {
  ...SHARED,
  name: 'smollm3',
  change: interleaved,
  config: (sizes) => ({
    ...rmsConfig(sizes),
    model_type: 'smollm3',
    architectures: ['SmolLM3ForCausalLM'],
    attention_bias: hasLayerTensor(sizes, 'attn_q.bias'),
    mlp_bias: hasLayerTensor(sizes, 'ffn_up.bias'),
    // The file doesn't say; every fourth layer doesn't rotate in all of them.
    no_rope_layer_interval: 4,
  }),
}

export const QWEN2: GgufFamily = {
  ...SHARED,
  name: 'qwen2',
  config: (sizes) => ({
    ...rmsConfig(sizes),
    model_type: 'qwen2',
    architectures: ['Qwen2ForCausalLM'],
  }),
}

export const QWEN3: GgufFamily = {
  ...SHARED,
  name: 'qwen3',
  layerNames: { ...LAYER_NAMES, ...HEAD_NORM_NAMES },
  config: (sizes) => ({
    ...rmsConfig(sizes),
    model_type: 'qwen3',
    architectures: ['Qwen3ForCausalLM'],
    attention_bias: hasLayerTensor(sizes, 'attn_q.bias'),
  }),
}

export const QWEN3_MOE: GgufFamily = {
  ...SHARED,
  name: 'qwen3moe',
  layerNames: { ...LAYER_NAMES, ...HEAD_NORM_NAMES, ffn_gate_inp: 'mlp.gate' },
  expertNames: EXPERT_NAMES,
  config: (sizes) => ({
    ...rmsConfig(sizes),
    model_type: 'qwen3_moe',
    architectures: ['Qwen3MoeForCausalLM'],
    attention_bias: hasLayerTensor(sizes, 'attn_q.bias'),
    moe_intermediate_size: sizes.model.metadata.count(sizes.key('expert_feed_forward_length')),
    num_experts: sizes.model.metadata.count(sizes.key('expert_count')),
    num_experts_per_tok: sizes.model.metadata.count(sizes.key('expert_used_count')),
    // llama.cpp's graph for this architecture; the file doesn't say.
    norm_topk_prob: true,
  }),
}

export const OLMOE: GgufFamily = {
  ...SHARED,
  name: 'olmoe',
  layerNames: { ...LAYER_NAMES, ...HEAD_NORM_NAMES, ffn_gate_inp: 'mlp.gate' },
  expertNames: EXPERT_NAMES,
  config: (sizes) => ({
    ...rmsConfig(sizes),
    model_type: 'olmoe',
    architectures: ['OlmoeForCausalLM'],
    num_experts: sizes.model.metadata.count(sizes.key('expert_count')),
    num_experts_per_tok: sizes.model.metadata.count(sizes.key('expert_used_count')),
    norm_topk_prob: false,
  }),
}

/** Phi-3 and Phi-4-mini: the fused matrices keep their order. */
export const PHI3: GgufFamily = {
  ...SHARED,
  name: 'phi3',
  layerNames: {
    attn_norm: 'input_layernorm',
    attn_qkv: 'self_attn.qkv_proj',
    attn_output: 'self_attn.o_proj',
    ffn_norm: 'post_attention_layernorm',
    ffn_up: 'mlp.gate_up_proj',
    ffn_down: 'mlp.down_proj',
  },
  config(sizes) {
    const window = optionalNumber(sizes, 'attention.sliding_window') ?? 0
    return {
      ...rmsConfig(sizes),
      model_type: 'phi3',
      architectures: ['Phi3ForCausalLM'],
      ...(window > 0 ? { sliding_window: window } : {}),
    }
  },
}

const GEMMA_LAYER_NAMES = {
  ...LAYER_NAMES,
  ffn_norm: 'pre_feedforward_layernorm',
  post_attention_norm: 'post_attention_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
}

function plusOne(part: string): Change {
  return { kind: part.endsWith('norm') ? 'plus-one' : 'none' }
}

/** Which layers see a window: as the file says, else all but every `period`th. */
function layerTypes(sizes: GgufSizes, period: number): string[] {
  const key = sizes.key('attention.sliding_window_pattern')
  const given = sizes.model.metadata.value(key)
  const listed = Array.isArray(given) ? given.map((item) => item === true || item === 1) : null
  const every = typeof given === 'number' && given > 0 ? given : period
  return Array.from({ length: sizes.layers }, (_, layer) => {
    const isWindowed = listed?.[layer] ?? (layer + 1) % every !== 0
    return isWindowed ? 'sliding_attention' : 'full_attention'
  })
}

/** The largest model of each generation scales scores by the hidden size of a head, the others by the key's. */
function queryScale(sizes: GgufSizes, largestLayers: number): number {
  return sizes.layers === largestLayers ? sizes.hidden / sizes.heads : sizes.headSize
}

export const GEMMA2: GgufFamily = {
  ...SHARED,
  name: 'gemma2',
  layerNames: GEMMA_LAYER_NAMES,
  change: plusOne,
  config: (sizes) => ({
    ...rmsConfig(sizes),
    model_type: 'gemma2',
    architectures: ['Gemma2ForCausalLM'],
    hidden_activation: 'gelu_pytorch_tanh',
    query_pre_attn_scalar: queryScale(sizes, 46),
    sliding_window: optionalNumber(sizes, 'attention.sliding_window') ?? 4096,
    layer_types: layerTypes(sizes, 2),
    attn_logit_softcapping: optionalNumber(sizes, 'attn_logit_softcapping') ?? 50,
    final_logit_softcapping: optionalNumber(sizes, 'final_logit_softcapping') ?? 30,
  }),
}

export const GEMMA3: GgufFamily = {
  ...SHARED,
  name: 'gemma3',
  layerNames: { ...GEMMA_LAYER_NAMES, ...HEAD_NORM_NAMES },
  change: plusOne,
  config(sizes) {
    const window = optionalNumber(sizes, 'attention.sliding_window') ?? 0
    const cap = optionalNumber(sizes, 'final_logit_softcapping')
    return {
      ...rmsConfig(sizes),
      model_type: 'gemma3_text',
      architectures: ['Gemma3ForCausalLM'],
      hidden_activation: 'gelu_pytorch_tanh',
      query_pre_attn_scalar: queryScale(sizes, 62),
      sliding_window: window > 0 ? window : sizes.context,
      layer_types: window > 0 ? layerTypes(sizes, 6) : Array(sizes.layers).fill('full_attention'),
      rope_local_base_freq: optionalNumber(sizes, 'rope.freq_base_swa') ?? 10_000,
      ...(cap === undefined ? {} : { final_logit_softcapping: cap }),
    }
  },
}
