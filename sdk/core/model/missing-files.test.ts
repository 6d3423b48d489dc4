import { expect, test } from 'vitest'
import { tokenizerRemedy, weightsRemedy } from './missing-files.ts'

test('a vocabulary of older kinds is to be converted, into a folder of this machine', () => {
  const remedy = tokenizerRemedy('org/name', ['config.json', 'merges.txt', 'vocab.json'])
  expect(remedy).toContain('It has vocab.json, merges.txt')
  expect(remedy).toContain('AutoTokenizer.from_pretrained("org/name").save_pretrained("name")')
  expect(tokenizerRemedy('/m/x', ['tokenizer.model'])).toContain('save_pretrained("/m/x")')
  expect(tokenizerRemedy('/m/x', ['config.json'])).toBe(
    'Add the one that the model was published with.',
  )
})

test('weights of other kinds: a GGUF file is given itself, old ones are to be converted', () => {
  expect(weightsRemedy('/m', ['a.Q4_0.gguf', 'pytorch_model.bin'])).toBe(
    'Give the GGUF file itself: a.Q4_0.gguf.',
  )
  const shards = [1, 2, 3, 4].map((i) => `pytorch_model-0000${i}-of-00004.bin`)
  expect(weightsRemedy('/m', shards)).toMatch(
    /It has .*00001.*00003-of-00004\.bin and 1 more, .*AutoModelForCausalLM\.from_pretrained\("\/m"\)/,
  )
  expect(weightsRemedy('/m', ['README.md'])).toBe('')
})
