import { describe, expect, it } from 'vitest'
import { TINY_CONFIG } from '../../../test/support/models.ts'
import { CrowdError } from '../errors.ts'
import { parseDecoder } from './parse-decoder.ts'

function refusal(changes: Record<string, unknown>): string {
  try {
    parseDecoder({ ...TINY_CONFIG, ...changes })
    return 'accepted'
  } catch (error) {
    return error instanceof CrowdError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('config.json', () => {
  it('gives sizes, with the defaults of the format', () => {
    const rest = { ...TINY_CONFIG, num_key_value_heads: undefined, head_dim: null }
    expect(parseDecoder(rest)).toMatchObject({
      hiddenSize: 64,
      headCount: 4,
      kvHeadCount: 4,
      headSize: 16,
      contextLength: 64,
      head: { tied: true },
      eosTokenIds: [2],
    })
  })

  it.each([
    [{ model_type: 't5', architectures: ['T5Model'] }, 'model-unsupported', 'T5Model'],
    [{ architectures: ['LlamaForSequenceClassification'] }, 'model-unsupported', 'Sequence'],
    [{ hidden_act: 'tanh' }, 'model-unsupported', 'tanh'],
    [{ rope_scaling: { rope_type: 'spiral', factor: 2 } }, 'model-unsupported', '"spiral"'],
    [{ rope_scaling: { rope_type: 'linear' } }, 'model-invalid', '"factor" is missing'],
    [{ partial_rotary_factor: 0.5 }, 'model-unsupported', '"partial_rotary_factor": 0.5'],
    [{ model_type: 'phi3', architectures: [], partial_rotary_factor: 3 }, 'model-invalid', '48 of'],
    [
      { model_type: 'phi3', architectures: [], rope_scaling: { type: 'yarn' } },
      'model-unsupported',
      '"yarn"',
    ],
    [
      { rope_parameters: { full_attention: { rope_theta: 5 } } },
      'model-unsupported',
      'nested by kind of layer',
    ],
    [
      { model_type: 'gemma3_text', architectures: [], rope_parameters: { rope_theta: 5 } },
      'model-unsupported',
      'not nested by kind of layer',
    ],
    [
      {
        model_type: 'smollm3',
        architectures: [],
        sliding_window: 8,
        layer_types: Array(2).fill('sliding_attention'),
      },
      'model-unsupported',
      '"use_sliding_window" is false',
    ],
    [
      { model_type: 'smollm3', architectures: [], no_rope_layers: [1, 2] },
      'model-invalid',
      'holds 2',
    ],
    [{ rope_scaling: 'linear' }, 'model-invalid', '"rope_scaling" must be an object'],
    [{ rms_norm_eps: null }, 'model-invalid', '"rms_norm_eps" is null'],
    [
      { model_type: 'gemma2', architectures: [], use_bidirectional_attention: true },
      'model-unsupported',
      'bidirectional',
    ],
    [
      { model_type: 'bloom', architectures: [], n_embed: 32, n_head: 4, n_layer: 2 },
      'model-invalid',
      'differ',
    ],
    [
      { model_type: 'olmoe', architectures: [], sliding_window: 8 },
      'model-unsupported',
      'sliding_window',
    ],
    [{ quantization_config: { bits: 4 } }, 'model-unsupported', 'quantization_config'],
    [{ sliding_window: 4096 }, 'model-unsupported', 'sliding_window'],
    [{ hidden_size: undefined }, 'model-invalid', '"hidden_size" is missing'],
    [{ vocab_size: 1.5 }, 'model-invalid', '"vocab_size" is 1.5'],
    [{ num_hidden_layers: 0 }, 'model-invalid', 'num_hidden_layers'],
    [{ num_hidden_layers: 1e9 }, 'model-invalid', 'num_hidden_layers'],
    [{ tie_word_embeddings: 'yes' }, 'model-invalid', 'tie_word_embeddings'],
    [{ num_attention_heads: 3, num_key_value_heads: 2 }, 'model-invalid', '3 attention heads'],
    [{ head_dim: 15 }, 'model-invalid', 'head size 15'],
    [{ rope_theta: -1 }, 'model-invalid', 'rope_theta'],
    [{ eos_token_id: [1, 'x'] }, 'model-invalid', 'eos_token_id'],
  ])('refuses %j', (changes, code, part) => {
    const message = refusal(changes)
    expect(message.startsWith(`${code}: config.json`)).toBe(true)
    expect(message).toContain(part)
  })

  it('reads the rotary base where newer files keep it', () => {
    const config = {
      ...TINY_CONFIG,
      rope_theta: 7,
      rope_parameters: { rope_type: 'default', rope_theta: 500_000 },
    }
    expect(parseDecoder(config).layers[0]?.attention.positions).toEqual({
      kind: 'rope',
      rope: { theta: 500_000, size: 16, scaling: { kind: 'none' } },
    })
  })

  it.each([
    [3, undefined, [3]],
    [[3, 4], {}, [3, 4]],
    [null, {}, []],
    // generation_config.json has the last word.
    [3, { eos_token_id: [5, 6] }, [5, 6]],
  ])('takes the end-of-text ids %j and %j', (own, generation, ids) => {
    expect(parseDecoder({ ...TINY_CONFIG, eos_token_id: own }, generation).eosTokenIds).toEqual(ids)
  })

  it('takes a family’s end-of-text id where the vocabulary has it', () => {
    const rest = { ...TINY_CONFIG, eos_token_id: undefined }
    expect(parseDecoder(rest).eosTokenIds).toEqual([2])
    const olmoe = { model_type: 'olmoe', architectures: [], num_experts: 2 }
    expect(parseDecoder({ ...rest, ...olmoe }).eosTokenIds).toEqual([])
    expect(parseDecoder({ ...rest, ...olmoe, vocab_size: 60_000 }).eosTokenIds).toEqual([50_279])
  })

  it('refuses an end-of-text id outside the vocabulary', () => {
    expect(() => parseDecoder(TINY_CONFIG, { eos_token_id: 96 })).toThrow(/96 is outside/)
  })

  it('serves the context that is asked for, up to the model’s own', () => {
    const long = { ...TINY_CONFIG, max_position_embeddings: 100_000 }
    expect(parseDecoder(long).contextLength).toBe(8192)
    expect(parseDecoder(long, undefined, 50_000).contextLength).toBe(50_000)
    expect(() => parseDecoder(long, undefined, 100_001)).toThrow(/from 1 to 100000/)
  })

  it('serves no more than LongRoPE’s short divisors are for, unless asked', () => {
    const factors = { short_factor: Array(8).fill(1), long_factor: Array(8).fill(2) }
    const scaling = { rope_type: 'longrope', original_max_position_embeddings: 32, ...factors }
    const config = { ...TINY_CONFIG, rope_scaling: scaling }
    const divisor = (length?: number): unknown => {
      const positions = parseDecoder(config, undefined, length).layers[0]?.attention.positions
      return positions?.kind === 'rope' ? positions.rope.scaling : undefined
    }
    expect(parseDecoder(config).contextLength).toBe(32)
    expect(divisor()).toMatchObject({ divisors: factors.short_factor })
    expect(divisor(33)).toMatchObject({ divisors: factors.long_factor })
  })

  it('scales nothing dynamically up to the model’s own context, whatever else the file says', () => {
    const scaling = { rope_type: 'dynamic', factor: 4, original_max_position_embeddings: 16 }
    const config = { ...TINY_CONFIG, rope_scaling: scaling }
    expect(parseDecoder(config)).toEqual(parseDecoder(TINY_CONFIG))
    expect(() => parseDecoder(config, undefined, 65)).toThrow(/from 1 to 64/)
  })
})
