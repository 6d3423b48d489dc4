import { describe, expect, it } from 'vitest'
import type { FamilyRow } from './compare.ts'
import { isRight } from './tolerance.ts'

const RIGHT: FamilyRow = {
  family: 'qwen2',
  source: 'safetensors',
  dtype: 'f32',
  maxLogitError: 1e-5,
  greedyAgreement: 1,
  splitEqualsWhole: true,
}

describe('a row of the families', () => {
  it.each<Partial<FamilyRow>>([
    {},
    { dtype: 'f16', maxLogitError: 0.1 },
    { dtype: 'q8', maxLogitError: 0.5, greedyAgreement: 0.9 },
    { dtype: 'q4', maxLogitError: 1.1, greedyAgreement: 0.9 },
    { dtype: 'q4', family: 'llama', maxLogitError: 3, greedyAgreement: 0.5 },
    { dtype: 'q4', source: 'gguf', maxLogitError: 8, greedyAgreement: 0.2 },
    { dtype: 'fp16', source: 'onnx', maxLogitError: 0.01 },
  ])('is right: %j', (change) => {
    expect(isRight({ ...RIGHT, ...change })).toBe(true)
  })

  it.each<Partial<FamilyRow>>([
    { maxLogitError: 2e-4 },
    { maxLogitError: NaN },
    { greedyAgreement: 0.95 },
    { splitEqualsWhole: false },
    { dtype: 'f16', maxLogitError: 0.3 },
    { dtype: 'f16', greedyAgreement: 0.8 },
    { dtype: 'q8', maxLogitError: 0.7 },
    { dtype: 'q8', greedyAgreement: 0.8 },
    { dtype: 'q4', maxLogitError: 1.3 },
    { dtype: 'q4', source: 'gguf', splitEqualsWhole: false },
    { dtype: 'fp16', source: 'onnx', maxLogitError: 0.03 },
    { dtype: 'int8', source: 'onnx', maxLogitError: 0.01 },
    { dtype: 'fp32', source: 'onnx', greedyAgreement: 0.95 },
  ])('is wrong: %j', (change) => {
    expect(isRight({ ...RIGHT, ...change })).toBe(false)
  })
})
