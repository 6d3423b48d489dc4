import { describe, expect, it } from 'vitest'
import { asBytes } from '../tensor/views.ts'
import type { GgufTensor } from './place-tensors.ts'
import { readRows } from './read-rows.ts'
import {
  groupedHeads,
  interleavedHeads,
  viewExpert,
  viewTensor,
  type Change,
  type TensorView,
} from './tensor-view.ts'
import { findTensorType } from './tensor-types.ts'

/** An F32 tensor whose value at (row, column) is row × 100 + column, and how its bytes are read. */
function numbered(dims: readonly number[]): {
  tensor: GgufTensor
  reads: number[]
  rows: (view: TensorView, first: number, count: number) => Promise<number[]>
} {
  const columns = dims.at(-1)!
  const count = dims.reduce((product, size) => product * size, 1)
  const values = Float32Array.from({ length: count }, (_, i) => {
    return Math.floor(i / columns) * 100 + (i % columns)
  })
  const bytes = asBytes(values)
  const tensor = { name: 't', type: findTensorType(0)!, dims, offset: 0, length: bytes.length }
  const reads: number[] = []
  const read = (offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> => {
    reads.push(length)
    return Promise.resolve(bytes.slice(offset, offset + length))
  }
  return {
    tensor,
    reads,
    rows: async (view, first, rowCount) => [...(await readRows(view, read, first, rowCount))],
  }
}

/** First column of each row. */
const rowsOf = (values: readonly number[], columns: number): number[] =>
  values.filter((_, i) => i % columns === 0).map((value) => value / 100)

const rows = (sourceRow: (row: number) => number): Change => ({ kind: 'rows', sourceRow })

describe('rows in the Hugging Face order', () => {
  it('interleaved halves of a head: what the converter does, undone', async () => {
    const heads = 3
    const size = 8
    // The converter: [heads, 2, size / 2] → [heads, size / 2, 2].
    const stored = Array.from({ length: heads * size }, (_, row) => {
      const within = row % size
      return row - within + (within % 2) * (size / 2) + Math.floor(within / 2)
    })
    const { tensor, rows: get } = numbered([heads * size, 2])
    const view = viewTensor('v', tensor, rows(interleavedHeads(size)))
    const order = rowsOf(await get(view, 0, heads * size), 2)
    expect(order.map((row) => stored[row])).toEqual([...stored.keys()])
  })

  it('grouped heads: what the converter does, undone', async () => {
    const [groups, queries, size] = [2, 3, 4]
    // The converter: per group its queries, key, value → all queries, all keys, all values.
    const fused = Array.from({ length: groups * (queries + 2) * size }, (_, row) => row)
    const slot = (row: number): number => Math.floor(row / size) % (queries + 2)
    const stored = [
      ...fused.filter((row) => slot(row) < queries),
      ...fused.filter((row) => slot(row) === queries),
      ...fused.filter((row) => slot(row) === queries + 1),
    ]
    const { tensor, rows: get } = numbered([fused.length, 2])
    const view = viewTensor('v', tensor, rows(groupedHeads(groups, queries, size)))
    const order = rowsOf(await get(view, 0, fused.length), 2)
    expect(order.map((row) => stored[row])).toEqual(fused)
  })

  it('gives any part of them, and reads no more than a few times its bytes', async () => {
    const { tensor, rows: get, reads } = numbered([64, 2])
    const view = viewTensor('v', tensor, rows(groupedHeads(8, 6, 1)))
    const all = await get(view, 0, 64)
    for (const [first, count] of [
      [0, 1],
      [5, 9],
      [63, 1],
      [30, 20],
    ] as const) {
      reads.length = 0
      expect(await get(view, first, count)).toEqual(all.slice(first * 2, (first + count) * 2))
      expect(reads.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(4 * count * 8)
    }
  })

  it('reorders the values of a vector', async () => {
    const { tensor, rows: get } = numbered([8])
    const view = viewTensor('v', tensor, rows(interleavedHeads(4)))
    expect(await get(view, 0, 1)).toEqual([0, 2, 1, 3, 4, 6, 5, 7])
  })

  it('turns a matrix, but no vector', async () => {
    const { tensor, rows: get } = numbered([2, 3])
    const view = viewTensor('v', tensor, { kind: 'transposed' })
    expect(view.dims).toEqual([3, 2])
    expect(await get(view, 1, 2)).toEqual([1, 101, 2, 102])
    const vector = numbered([3])
    const same = viewTensor('v', vector.tensor, { kind: 'transposed' })
    expect(await vector.rows(same, 0, 1)).toEqual([0, 1, 2])
  })

  it('takes one from norms that hold one more', async () => {
    const { tensor, rows: get } = numbered([3])
    const view = viewTensor('v', tensor, { kind: 'plus-one' })
    expect(await get(view, 0, 1)).toEqual([-1, 0, 1])
  })

  it('finds an expert in its stack', async () => {
    const { tensor, rows: get } = numbered([4, 2, 3])
    const view = viewExpert('v', tensor, 2)
    expect(view.dims).toEqual([2, 3])
    expect(await get(view, 0, 2)).toEqual([400, 401, 402, 500, 501, 502])
    expect(await get(view, 1, 1)).toEqual([500, 501, 502])
  })

  it('refuses heads that need more rows than there are', async () => {
    const { tensor, rows: get } = numbered([10, 2])
    const view = viewTensor('v', tensor, rows(interleavedHeads(8)))
    await expect(get(view, 8, 2)).rejects.toThrow(/tensor t has fewer rows/)
  })
})
