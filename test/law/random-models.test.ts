import * as cpu from 'onnxruntime-node'
import * as wasm from 'onnxruntime-web'
import { describe, expect, it } from 'vitest'
import type { WeightDtype } from '../../sdk/core/model/manifest.ts'
import { greedy, openChain, openWhole, worstDifference } from '../support/chained-blocks.ts'
import type { OrtModule } from '../support/chained-blocks.ts'
import { createRandomModel } from '../support/models.ts'

const PROMPT = [5, 17, 3, 88, 41, 9, 60, 2, 33, 71, 12]
const RUN = { count: 12, chunk: 4, vocabSize: 96 }

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
}
const DTYPES: readonly WeightDtype[] = ['f32', 'f16', 'q4']
const PROVIDERS: readonly { name: 'cpu' | 'wasm'; ort: OrtModule }[] = [
  { name: 'cpu', ort: cpu },
  { name: 'wasm', ort: wasm },
]

describe.each(PROVIDERS)('chained blocks = whole graph on $name', ({ name, ort }) => {
  describe.each(Object.keys(SHAPES))('%s', (shape) => {
    it.each(DTYPES)('%s', async (dtype) => {
      const model = createRandomModel(SHAPES[shape], dtype)
      const whole = await openWhole(ort, model, name)
      const chain = await openChain(ort, model, { provider: name, cuts: [1, 2, 3, 4] })
      const want = await greedy(whole, PROMPT, RUN)
      const got = await greedy(chain, PROMPT, RUN)
      expect(got.ids).toEqual(want.ids)
      // int8 activations of the CPU's 4-bit kernel round differently at the last bit of their input.
      const tolerance = dtype === 'q4' && name === 'cpu' ? 5e-2 : 1e-4
      expect(worstDifference(got.logits, want.logits)).toBeLessThan(tolerance)
      await Promise.all([whole.close(), chain.close()])
    })
  })
})
