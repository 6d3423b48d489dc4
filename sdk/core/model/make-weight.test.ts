import { describe, expect, it } from 'vitest'
import {
  createRandomModel,
  createLlamaModel,
  memorySource,
  randomTensors,
  tinyLlama,
} from '../../../test/support/models.ts'
import { dequantizeQ8 } from '../tensor/quantize-q8.ts'
import { asFloats } from '../tensor/views.ts'
import { embeddingRows } from './embedding-table.ts'
import { isQuantized, type WeightDtype } from './manifest.ts'

const config = tinyLlama()
const EMBEDDING = 'model.embed_tokens.weight'

function withTensor(
  name: string,
  change: (values: Float32Array<ArrayBuffer>) => void,
  options: { dtype?: WeightDtype; drop?: boolean } = {},
): ReturnType<typeof createLlamaModel> {
  const tensors = randomTensors(config)
  change(tensors.get(name)!)
  if (options.drop) tensors.delete(name)
  return createLlamaModel(config, options.dtype ?? 'f32', memorySource(config, tensors))
}

describe('block data', () => {
  it('stores linear weights transposed, at the places that the plan names', async () => {
    const model = createRandomModel()
    const data = await model.blockBytes(1)
    const weight = model.plans[1]!.weights.find(({ recipe }) =>
      recipe.source.includes('down_proj'),
    )!
    const { rows, columns, source } = weight.recipe
    const values = asFloats(data.subarray(weight.offset, weight.offset + weight.length))
    const want = randomTensors(config).get(source)!
    expect([rows, columns]).toEqual([64, 96])
    expect(values[5 * rows + 7]).toBe(want[7 * columns + 5])
    expect(weight.offset % 64).toBe(0)
  })

  it('begins a tied head with the very bytes of the embedding, and says where to cut', async () => {
    for (const dtype of ['f32', 'f16', 'q4'] as const) {
      const model = createRandomModel({}, dtype)
      const [embedding, head] = [await model.blockBytes(0), await model.blockBytes(3)]
      expect(model.plans[3]!.cuts).toEqual([embedding.length])
      expect(head.subarray(0, embedding.length)).toEqual(embedding)
      expect(head.length).toBeGreaterThan(embedding.length)
    }
  })

  it('counts the bytes of f32, whatever is stored', () => {
    const sizes = (dtype: WeightDtype): number[] =>
      createRandomModel({}, dtype).plans.map((plan) => plan.f32Bytes)
    expect(sizes('f16')).toEqual(sizes('f32'))
    expect(sizes('q4')).toEqual(sizes('f32'))
    expect(createRandomModel().plans[0]!.f32Bytes).toBe(96 * 64 * 4)
  })

  it('names a tensor that is missing, misshapen, not finite or too large for f16', async () => {
    const norm = 'model.layers.1.input_layernorm.weight'
    const missing = withTensor(norm, () => undefined, { drop: true })
    await expect(missing.blockBytes(2)).rejects.toThrow(`The weights lack the tensor ${norm}.`)

    const other = tinyLlama({ vocab_size: 95 })
    const misshapen = createLlamaModel(other, 'f32', memorySource(config, randomTensors(config)))
    await expect(misshapen.blockBytes(0)).rejects.toThrow(
      `The tensor ${EMBEDDING} is [96, 64]; config.json asks for [95, 64].`,
    )

    const infinite = withTensor(EMBEDDING, (values) => (values[9] = NaN))
    await expect(infinite.blockBytes(0)).rejects.toThrow(/embed_tokens.* not finite/)

    const large = withTensor(EMBEDDING, (values) => (values[9] = 1e6), { dtype: 'f16' })
    await expect(large.blockBytes(0)).rejects.toThrow(/embed_tokens.* too large for f16/)
  })

  it.each(['q4', 'q8'] as const)('reads and quantises a matrix once in %s', async (dtype) => {
    const reads: string[] = []
    const source = memorySource(config, randomTensors(config))
    const model = createLlamaModel(config, dtype, {
      ...source,
      read: (name, offset, length) => {
        reads.push(name)
        return source.read(name, offset, length)
      },
    })
    for (const block of model.plans.keys()) {
      reads.length = 0
      await model.blockBytes(block)
      expect(new Set(reads).size).toBe(reads.length)
    }
    expect(reads).toContain(EMBEDDING)
  })

  it('refuses 4-bit weights for a hidden size that has no whole blocks', () => {
    expect(() => createRandomModel({ hidden_size: 48, head_dim: 16 }, 'q4')).toThrow(/size 48/)
  })
})

describe('embedding rows', () => {
  it.each([
    ['f32', 0],
    ['f16', 1e-3],
    ['q8', 0.01],
    ['q4', 0.01],
  ] as const)('of a %s table are the rows of the weights', async (dtype, tolerance) => {
    const model = createRandomModel({}, dtype)
    const data = await model.blockBytes(0)
    const table = model.plans[0]!.table!
    const rows = embeddingRows(table, data, Int32Array.of(95, 0, 7, 95))
    const want = randomTensors(config).get(EMBEDDING)!
    const expected = [95, 0, 7, 95].flatMap((id) => [...want.subarray(id * 64, (id + 1) * 64)])
    expect(rows.length).toBe(expected.length)
    expected.forEach((value, i) => {
      expect(Math.abs(value - rows[i]!)).toBeLessThanOrEqual(tolerance)
    })
    if (!isQuantized(dtype)) return
    expect(table.dtype).toBe('q8')
    const packed = data.subarray(table.offset, table.offset + 96 * 64)
    const scales = asFloats(data.subarray(table.scaleOffset, table.scaleOffset! + 96 * 8))
    expect(rows.subarray(0, 64)).toEqual(dequantizeQ8(packed, scales, 96, 64).subarray(95 * 64))
  })

  it('refuse an id outside the vocabulary and data that is too short', async () => {
    const model = createRandomModel()
    const data = await model.blockBytes(0)
    const table = model.plans[0]!.table!
    expect(() => embeddingRows(table, data, Int32Array.of(96))).toThrow(/token id 96/)
    expect(() => embeddingRows(table, data, Int32Array.of(-1))).toThrow(/token id -1/)
    const short = data.subarray(0, data.length - 1)
    expect(() => embeddingRows(table, short, Int32Array.of(95))).toThrow(/longer than its data/)
  })
})
