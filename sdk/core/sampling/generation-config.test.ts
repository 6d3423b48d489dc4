import { expect, test } from 'vitest'
import { parseSamplingDefaults } from './generation-config.ts'

test('the settings of a model that samples', () => {
  expect(
    parseSamplingDefaults({
      do_sample: true,
      temperature: 0.6,
      top_p: 0.95,
      top_k: 20,
      min_p: 0.05,
      repetition_penalty: 1.1,
      eos_token_id: [1, 2],
    }),
  ).toEqual({ temperature: 0.6, topP: 0.95, topK: 20, minP: 0.05, repetitionPenalty: 1.1 })
})

test('without do_sample they say nothing of sampling', () => {
  expect(parseSamplingDefaults({ temperature: 0.6, repetition_penalty: 1.1 })).toEqual({})
  expect(parseSamplingDefaults({ do_sample: false, top_k: 3 })).toEqual({})
  for (const json of [undefined, null, [], 'x', 3]) expect(parseSamplingDefaults(json)).toEqual({})
})

test('what no ring could do is left out, and the rest counts', () => {
  expect(
    parseSamplingDefaults({
      do_sample: true,
      temperature: -1,
      top_p: 0,
      top_k: 2.5,
      min_p: '0.1',
      repetition_penalty: Infinity,
    }),
  ).toEqual({})
  expect(parseSamplingDefaults({ do_sample: true, temperature: null, top_k: 0 })).toEqual({
    topK: 0,
  })
})
