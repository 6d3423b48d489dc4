import { describe, expect, it } from 'vitest'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import { greedy, openChain, openWhole, worstDifference } from '../support/chained-blocks.ts'
import { createRandomModel, randomTensors } from '../support/models.ts'
import { referenceLogits } from '../support/reference-decoder.ts'
import { testBackend } from '../support/node-backends.ts'

const PROMPT = [5, 17, 3, 88, 41, 9, 60, 2, 33, 71, 12]
const RUN = { count: 6, chunk: 4, vocabSize: 96 }
const TOLERANCE = 1e-4
/** int8 activations of the CPU's 4-bit kernel round differently at the last bit of their input. */
const INT8_TOLERANCE = 5e-2

const SHAPES: Readonly<Record<string, Record<string, unknown>>> = {
  'grouped heads, tied embedding': {},
  'one key-value head, untied head': { num_key_value_heads: 1, tie_word_embeddings: false },
  'head size 8, which attention cannot rotate itself': { num_attention_heads: 8, head_dim: 8 },
  'head size 64': { num_attention_heads: 2, num_key_value_heads: 1, head_dim: 64 },
  'every head its own keys': { num_key_value_heads: 4 },
  'an inner size that fills no whole 4-bit block': { intermediate_size: 88 },
  'Llama 3 rotary scaling': {
    rope_scaling: {
      rope_type: 'llama3',
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 32,
    },
  },
  'linear rotary scaling': { rope_scaling: { type: 'linear', factor: 4 } },
}
/** Weights other than f32 change single products only; the shapes where that could matter. */
const STORED: readonly (readonly [WeightDtype, string])[] = [
  ['f16', 'grouped heads, tied embedding'],
  ['f16', 'one key-value head, untied head'],
  ['q4', 'grouped heads, tied embedding'],
  ['q4', 'one key-value head, untied head'],
  ['q4', 'an inner size that fills no whole 4-bit block'],
]

describe.each(['cpu', 'wasm'] as const)('on %s', (provider) => {
  const { ort } = testBackend(provider)

  it.each(STORED)('%s, %s: chained blocks = whole graph', async (dtype, shape) => {
    const model = createRandomModel(SHAPES[shape], dtype)
    // As written the CPU multiplies 4-bit weights that have f32 zero points with f32 activations.
    const lowered = dtype === 'q4' && provider === 'cpu'
    const whole = await openWhole(ort, model, provider, { lowered })
    const chain = await openChain(ort, model, { provider, cuts: [1, 2, 3] })
    const want = await greedy(whole, PROMPT, RUN)
    const got = await greedy(chain, PROMPT, RUN)
    await Promise.all([whole.close(), chain.close()])
    expect(got.ids).toEqual(want.ids)
    const tolerance = dtype === 'q4' && provider === 'cpu' ? INT8_TOLERANCE : TOLERANCE
    expect(worstDifference(got.logits, want.logits)).toBeLessThan(tolerance)
  })

  it.each(Object.keys(SHAPES))('f32, %s: chain = whole = plain arithmetic', async (shape) => {
    const model = createRandomModel(SHAPES[shape], 'f32')
    const tensors = randomTensors(model.config)
    const whole = await openWhole(ort, model, provider)
    const chain = await openChain(ort, model, { provider, cuts: [1, 2, 3] })
    const unsplit = await greedy(whole, PROMPT, RUN)
    const { ids, logits } = await greedy(chain, PROMPT, RUN)
    await Promise.all([whole.close(), chain.close()])
    expect(ids).toEqual(unsplit.ids)
    expect(worstDifference(logits, unsplit.logits)).toBeLessThan(TOLERANCE)
    const plain = logits.map((_, i) => {
      const text = [...PROMPT, ...ids.slice(0, i)]
      const row = referenceLogits(model.config, (name) => tensors.get(name) ?? [], text)
      return Float32Array.from(row)
    })
    expect(worstDifference(logits, plain)).toBeLessThan(TOLERANCE)
  })

  it('gives the same bits for the same runs when the hidden state crosses borders', async () => {
    const model = createRandomModel({}, 'q4')
    const plain = await openChain(ort, model, { provider, cuts: [] })
    const cut = await openChain(ort, model, { provider, cuts: [1, 2, 3] })
    const want = await greedy(plain, PROMPT, RUN)
    const got = await greedy(cut, PROMPT, RUN)
    await Promise.all([plain.close(), cut.close()])
    expect(worstDifference(got.logits, want.logits)).toBe(0)
  })
})
