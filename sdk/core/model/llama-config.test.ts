import { describe, expect, it } from 'vitest'
import { TINY_CONFIG } from '../../../test/support/models.ts'
import { CrowdError } from '../errors.ts'
import { parseLlamaConfig, parseTokenIds } from './llama-config.ts'
import { inverseFrequencies } from './rope.ts'

function refusal(changes: Record<string, unknown>): string {
  try {
    parseLlamaConfig({ ...TINY_CONFIG, ...changes })
    return 'accepted'
  } catch (error) {
    return error instanceof CrowdError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('config.json', () => {
  it('gives sizes, with the defaults of the format', () => {
    const rest = { ...TINY_CONFIG, num_key_value_heads: undefined, head_dim: null }
    expect(parseLlamaConfig(rest)).toMatchObject({
      hiddenSize: 64,
      headCount: 4,
      kvHeadCount: 4,
      headSize: 16,
      layerCount: 2,
      contextLength: 64,
      tiedEmbedding: true,
      rope: { theta: 10_000, scaling: { kind: 'none' } },
      eosTokenIds: [2],
    })
  })

  it.each([
    [{ model_type: 'gpt2', architectures: ['GPT2LMHeadModel'] }, 'model-unsupported', 'GPT2LMHead'],
    [{ attention_bias: true }, 'model-unsupported', 'attention_bias'],
    [{ mlp_bias: true }, 'model-unsupported', 'mlp_bias'],
    [{ hidden_act: 'gelu' }, 'model-unsupported', 'gelu'],
    [{ rope_scaling: { rope_type: 'yarn', factor: 2 } }, 'model-unsupported', '"yarn"'],
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
    expect(parseLlamaConfig(config).rope).toEqual({ theta: 500_000, scaling: { kind: 'none' } })
  })

  it('takes one end-of-text id, several, or none', () => {
    expect(parseTokenIds(3, 'f')).toEqual([3])
    expect(parseTokenIds([3, 4], 'f')).toEqual([3, 4])
    expect(parseTokenIds(null, 'f')).toEqual([])
  })
})

describe('rotary frequencies', () => {
  const scaling = {
    kind: 'llama3',
    factor: 8,
    lowFrequencyFactor: 1,
    highFrequencyFactor: 4,
    originalContext: 8192,
  } as const

  it('fall geometrically from 1', () => {
    const plain = { theta: 10_000, scaling: { kind: 'none' } } as const
    expect([...inverseFrequencies(plain, 8)]).toEqual([1, 0.1, 0.01, 0.001].map(Math.fround))
  })

  it('of Llama 3 keep the fast ones and slow the slow ones by the factor', () => {
    const plain = inverseFrequencies({ theta: 500_000, scaling: { kind: 'none' } }, 128)
    const scaled = inverseFrequencies({ theta: 500_000, scaling }, 128)
    expect(scaled[0]).toBe(plain[0])
    expect(scaled[63]).toBeCloseTo(plain[63]! / 8, 12)
    // In between they blend, and never grow.
    expect([...scaled].every((value, i) => value <= plain[i]! && value >= plain[i]! / 8.001)).toBe(
      true,
    )
  })
})
