import { describe, expect, it } from 'vitest'
import type { GgufModel } from './family.ts'
import { mapModel } from './map-model.ts'
import { readMetadata } from './metadata.ts'
import { findTensorType } from './tensor-types.ts'

/** A model of one layer; entries are those of the architecture, shapes those of the named tensors. */
function model(
  architecture: string,
  entries: Readonly<Record<string, unknown>>,
  shapes: Readonly<Record<string, readonly number[]>>,
): GgufModel {
  const sizes = {
    embedding_length: 32,
    block_count: 1,
    feed_forward_length: 64,
    context_length: 128,
    'attention.head_count': 4,
    'attention.layer_norm_rms_epsilon': Math.fround(1e-6),
    'attention.layer_norm_epsilon': Math.fround(1e-5),
  }
  const own = Object.entries({ ...sizes, ...entries }).map(
    ([key, value]) => [`${architecture}.${key}`, value] as const,
  )
  const all = { 'general.architecture': architecture, ...Object.fromEntries(own) }
  const wanted = { 'token_embd.weight': [16, 32], 'blk.0.ffn_up.weight': [64, 32], ...shapes }
  const tensors = Object.entries(wanted).map(([name, dims]) => {
    return [name, { name, type: findTensorType(0)!, dims, offset: 0, length: 0 }] as const
  })
  return { file: 'm.gguf', metadata: readMetadata(all, 'm.gguf'), tensors: new Map(tensors) }
}

const config = (
  architecture: string,
  entries: Readonly<Record<string, unknown>> = {},
  shapes: Readonly<Record<string, readonly number[]>> = {},
): Readonly<Record<string, unknown>> => mapModel(model(architecture, entries, shapes), {}).config

describe('settings of a GGUF file as config.json has them', () => {
  it('decimals as they were, not as f32 has them', () => {
    expect(config('llama', { 'rope.freq_base': Math.fround(1e6) })).toMatchObject({
      rms_norm_eps: 1e-6,
      rope_theta: 1e6,
      tie_word_embeddings: true,
    })
    expect(config('llama', {}, { 'output.weight': [16, 32] })['tie_word_embeddings']).toBe(false)
  })

  it('biases where the file has them', () => {
    expect(config('llama')).toMatchObject({ attention_bias: false, mlp_bias: false })
    const biases = { 'blk.0.attn_q.bias': [32], 'blk.0.ffn_up.bias': [64] }
    expect(config('llama', {}, biases)).toMatchObject({ attention_bias: true, mlp_bias: true })
  })

  it('experts: the architecture llama with experts is Mixtral', () => {
    const experts = { expert_count: 8, expert_used_count: 2 }
    const mapped = mapModel(
      model('llama', experts, {
        'blk.0.ffn_gate_inp.weight': [8, 32],
        'blk.0.ffn_down_exps.weight': [8, 32, 64],
      }),
      {},
    )
    expect(mapped.config).toMatchObject({ model_type: 'mixtral', num_local_experts: 8 })
    const name = 'model.layers.0.block_sparse_moe.experts.5.w2.weight'
    expect(mapped.views.get(name)).toMatchObject({ dims: [32, 64], firstRow: 5 * 32 })
    expect(mapped.views.has('model.layers.0.block_sparse_moe.gate.weight')).toBe(true)
  })

  it('experts of 2023, one tensor each', () => {
    const experts = { expert_count: 8, expert_used_count: 2 }
    const { views } = mapModel(model('llama', experts, { 'blk.0.ffn_gate.3.weight': [64, 32] }), {})
    expect(views.has('model.layers.0.block_sparse_moe.experts.3.w1.weight')).toBe(true)
  })

  it.each([
    ['none', {}, undefined],
    ['a factor alone', { 'rope.scaling.factor': 4 }, { rope_type: 'linear', factor: 4 }],
    ['of old files', { 'rope.scale_linear': 4 }, { rope_type: 'linear', factor: 4 }],
    [
      'linear',
      { 'rope.scaling.type': 'linear', 'rope.scaling.factor': 8 },
      { rope_type: 'linear', factor: 8 },
    ],
    [
      'yarn',
      {
        'rope.scaling.type': 'yarn',
        'rope.scaling.factor': 4,
        'rope.scaling.original_context_length': 32,
      },
      {
        rope_type: 'yarn',
        factor: 4,
        original_max_position_embeddings: 32,
        beta_fast: 32,
        beta_slow: 1,
      },
    ],
  ])('rotary scaling: %s', (_kind, entries, want) => {
    expect(config('qwen2', entries)['rope_scaling']).toEqual(want)
  })

  it('rotary divisors: Llama 3 has one list, LongRoPE two; a list of ones is none', () => {
    const llama = model('llama', {}, {})
    expect(mapModel(llama, { all: [1, 1, 2, 8] }).config['rope_scaling']).toMatchObject({
      rope_type: 'longrope',
      short_factor: [1, 1, 2, 8],
      long_factor: [1, 1, 2, 8],
      attention_factor: 1,
    })
    expect(mapModel(llama, { all: [1, 1, 1, 1] }).config).not.toHaveProperty('rope_scaling')
    const entries = {
      'rope.dimension_count': 6,
      'rope.scaling.original_context_length': 64,
      'attention.sliding_window': 0,
    }
    const phi = mapModel(model('phi3', entries, {}), { short: [1], long: [3] }).config
    expect(phi).toMatchObject({
      partial_rotary_factor: 0.75,
      original_max_position_embeddings: 64,
      rope_scaling: { rope_type: 'longrope', short_factor: [1], long_factor: [3] },
    })
    expect(phi).not.toHaveProperty('sliding_window')
  })

  it('rotary divisors and a linear factor: both divide', () => {
    const linear = model('llama', { 'rope.scaling.type': 'linear', 'rope.scaling.factor': 4 }, {})
    expect(mapModel(linear, { all: [1, 1, 2, 8] }).config['rope_scaling']).toMatchObject({
      short_factor: [4, 4, 8, 32],
      long_factor: [4, 4, 8, 32],
    })
    const ones = mapModel(linear, { all: [1, 1, 1, 1] }).config
    expect(ones['rope_scaling']).toEqual({ rope_type: 'linear', factor: 4 })
  })

  const yarn = { 'rope.scaling.type': 'yarn', 'rope.scaling.factor': 4 }
  it.each([
    ['yarn beside divisors', yarn, { all: [2] }, 'rope_freqs.weight beside yarn'],
    [
      'one list of LongRoPE',
      {},
      { short: [2] },
      'rope_factors_short.weight without rope_factors_l',
    ],
    ['the other list', {}, { long: [2] }, 'rope_factors_long.weight without rope_factors_short'],
    ['three lists', {}, { all: [1], short: [1], long: [2] }, 'rope_freqs.weight beside LongRoPE'],
    ['LongRoPE and yarn', yarn, { short: [1], long: [2] }, 'rope.scaling.type is "yarn" beside'],
    [
      'LongRoPE and a factor',
      { 'rope.scaling.factor': 4 },
      { short: [1], long: [2] },
      'llama.rope.scaling.factor is 4',
    ],
    [
      "another share of yarn's own",
      { ...yarn, 'rope.scaling.yarn_ext_factor': 0 },
      {},
      'llama.rope.scaling.yarn_ext_factor is 0',
    ],
    [
      'a factor over that of yarn',
      { ...yarn, 'rope.scaling.attn_factor': 0.5 },
      {},
      'llama.rope.scaling.attn_factor is 0.5',
    ],
  ])('refuses %s', (_what, entries, divisors, message) => {
    expect(() => mapModel(model('llama', entries, {}), divisors)).toThrow(message)
  })

  it('windows and scales of Gemma', () => {
    const entries = { block_count: 1, 'attention.key_length': 16, 'attention.sliding_window': 512 }
    expect(config('gemma3', entries)).toMatchObject({
      query_pre_attn_scalar: 16,
      layer_types: ['sliding_attention'],
      rope_local_base_freq: 10_000,
    })
    expect(config('gemma3')['layer_types']).toEqual(['full_attention'])
    const listed = { ...entries, 'attention.sliding_window_pattern': [false] }
    expect(config('gemma3', listed)['layer_types']).toEqual(['full_attention'])
    expect(config('gemma2')).toMatchObject({
      attn_logit_softcapping: 50,
      final_logit_softcapping: 30,
    })
  })

  it('Falcon with two norms in a layer', () => {
    const shapes = { 'blk.0.attn_norm.weight': [32], 'blk.0.attn_norm_2.weight': [32] }
    const { config: got, views } = mapModel(
      model('falcon', { 'attention.head_count_kv': 2 }, shapes),
      {},
    )
    expect(got).toMatchObject({ new_decoder_architecture: true, num_ln_in_parallel_attn: 2 })
    expect([...views.keys()]).toContain('transformer.h.0.ln_mlp.weight')
    expect(views.get('transformer.h.0.ln_attn.weight')?.tensor.name).toBe(
      'blk.0.attn_norm_2.weight',
    )
    expect(config('falcon', { 'attention.head_count_kv': 1 })).toMatchObject({
      new_decoder_architecture: false,
      multi_query: true,
    })
  })

  it.each([
    ['attention.causal', false],
    ['expert_gating_func', 2],
    ['residual_scale', 0.5],
    ['attention.clamp_kqv', 8],
    ['attention.chunk_size', 4096],
    ['attention.key_length_swa', 16],
    ['attention.value_length_swa', 16],
    ['rope.dimension_count_swa', 4],
    ['rope.scaling.attn_factor', 1.5],
    ['rope.scaling.yarn_ext_factor', 0.5],
    ['rope.scaling.yarn_attn_factor', 0.5],
    ['rope.scaling.yarn_log_multiplier', 0.1],
  ])('refuses %s = %s by name', (key, value) => {
    expect(() => config('llama', { [key]: value })).toThrow(`llama.${key} is ${String(value)}`)
  })

  it('refuses keys and values of different length, and layers beyond the last', () => {
    expect(() => config('llama', { 'attention.value_length': 4 })).toThrow(/value_length differs/)
    const shapes = { 'blk.1.ffn_up.weight': [64, 32] }
    expect(() => config('llama', {}, shapes)).toThrow(/block_count is 1; .* 2 layers/)
  })
})
