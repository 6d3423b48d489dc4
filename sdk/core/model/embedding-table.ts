import { CrowdError } from '../errors.ts'
import { halvesToFloats } from '../tensor/float16.ts'
import { dequantizeBlocks } from '../tensor/dequantize-blocks.ts'
import { Q4_BLOCK } from '../tensor/quantize-q4.ts'
import { dequantizeQ8 } from '../tensor/quantize-q8.ts'
import { asFloats, asHalves } from '../tensor/views.ts'
import type { EmbeddingTable } from './manifest.ts'

/**
 * Rows of the embedding as f32 [ids.length, columns], from the data bytes of block 0.
 * @throws CrowdError bad-request for an id outside the vocabulary, model-invalid for short data
 */
export function embeddingRows(
  table: EmbeddingTable,
  data: Uint8Array,
  ids: Int32Array,
): Float32Array<ArrayBuffer> {
  const { rows, columns } = table
  const out = new Float32Array(ids.length * columns)
  ids.forEach((id, i) => {
    if (id < 0 || id >= rows) {
      throw new CrowdError(
        'bad-request',
        `The token id ${id} is outside the vocabulary of ${rows}.`,
      )
    }
    out.set(readRow(table, data, id), i * columns)
  })
  return out
}

function readRow(table: EmbeddingTable, data: Uint8Array, id: number): Float32Array {
  const { columns, dtype, offset } = table
  if (dtype === 'f32') return asFloats(range(data, offset + id * columns * 4, columns * 4))
  if (dtype === 'f16') {
    return halvesToFloats(asHalves(range(data, offset + id * columns * 2, columns * 2)))
  }
  if (dtype === 'packed') return packedRow(table, data, id)
  const scaleBytes = (columns / Q4_BLOCK) * 4
  const packed = range(data, offset + id * columns, columns)
  const scales = asFloats(range(data, (table.scaleOffset ?? 0) + id * scaleBytes, scaleBytes))
  return dequantizeQ8(packed, scales, 1, columns)
}

function packedRow(table: EmbeddingTable, data: Uint8Array, id: number): Float32Array {
  const { columns, offset, scaleOffset = 0, zeroOffset, bits = 4, blockSize = 32 } = table
  const blocks = Math.ceil(columns / blockSize)
  const row = (from: number, bytes: number): Uint8Array => range(data, from + id * bytes, bytes)
  const zeroBytes = Math.ceil((blocks * bits) / 8)
  return dequantizeBlocks({
    packed: row(offset, (columns * bits) / 8),
    scales: asFloats(row(scaleOffset, blocks * 4)),
    zeros: zeroOffset === undefined ? null : row(zeroOffset, zeroBytes),
    shape: { rows: 1, columns, bits, blockSize },
  })
}

function range(data: Uint8Array, from: number, length: number): Uint8Array {
  if (from + length <= data.length) return data.subarray(from, from + length)
  throw new CrowdError('model-invalid', 'The embedding table is longer than its data.')
}
