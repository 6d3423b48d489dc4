import { expect, it } from 'vitest'
import { createRandomModel } from '../test/support/models.ts'
import type { Block, WeightDtype } from './core/model/manifest.ts'
import { reportSizes } from './model-report.ts'

const DTYPES = ['f32', 'f16', 'q8', 'q4'] as const

function blocksOf(dtype: WeightDtype): Block[] {
  // Wide enough that norms don't count.
  const sizes = { hidden_size: 256, intermediate_size: 512, vocab_size: 1024 }
  return createRandomModel(sizes, dtype).plans.map(({ kind, dataBytes, f32Bytes }) => {
    return { kind, dataBytes, f32Bytes, graph: null, data: [] }
  })
}

it('says of each block what it takes in each dtype, tables and zero points included', () => {
  const model = { layerCount: 2, kvHeadCount: 2, headSize: 16, contextLength: 64 }
  const sizes = { vocabSize: 1024, hiddenSize: 256, dtype: 'f32' } as const
  const { blocks } = reportSizes({ ...model, ...sizes, blocks: blocksOf('f32') }, true)
  expect(blocks.map(({ name }) => name)).toEqual(['embedding', 'layers 1–2', 'head'])
  for (const dtype of DTYPES) {
    const [embedding, layer, , head] = blocksOf(dtype).map(({ dataBytes }) => dataBytes)
    const real = [embedding!, layer!, head!]
    blocks.forEach(({ byDtype }, i) => {
      expect(Math.abs(byDtype[dtype] / real[i]! - 1)).toBeLessThan(0.01)
    })
  }
})
