import { Q4_BLOCK as BLOCK, q4Blocks } from './quantize-q4.ts'

/**
 * 8-bit blocks of 32 along the columns, symmetric, in the layout of ONNX Runtime's MatMulNBits: one byte per
 * column, stored value = quantum + 128; one f32 scale per block.
 */
export type Q8Matrix = {
  /** [rows, blocks, 32]; a last block that the columns don't fill is padded with zeros. */
  readonly packed: Uint8Array<ArrayBuffer>
  /** [rows, blocks]. */
  readonly scales: Float32Array<ArrayBuffer>
}

const ZERO = 128

/** Quantises a row-major [rows, columns] matrix; the value of largest magnitude becomes ±127. */
export function quantizeQ8(values: Float32Array, rows: number, columns: number): Q8Matrix {
  const blocks = q4Blocks(columns)
  const packed = new Uint8Array(rows * blocks * BLOCK).fill(ZERO)
  const scales = new Float32Array(rows * blocks)
  for (let row = 0; row < rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const from = row * columns + block * BLOCK
      const length = Math.min(BLOCK, columns - block * BLOCK)
      let extreme = 0
      for (let i = 0; i < length; i++) extreme = Math.max(extreme, Math.abs(values[from + i] ?? 0))
      const index = row * blocks + block
      const scale = Math.fround(extreme / 127)
      const inverse = scale === 0 ? 0 : 1 / scale
      scales[index] = scale
      for (let i = 0; i < length; i++) {
        const quantum = Math.round((values[from + i] ?? 0) * inverse)
        packed[index * BLOCK + i] = Math.min(127, Math.max(-127, quantum)) + ZERO
      }
    }
  }
  return { packed, scales }
}

/** The f32 values [rows, columns] of a quantised matrix. */
export function dequantizeQ8(
  packed: Uint8Array,
  scales: Float32Array,
  rows: number,
  columns: number,
): Float32Array<ArrayBuffer> {
  const blocks = q4Blocks(columns)
  const out = new Float32Array(rows * columns)
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const block = row * blocks + (column >>> 5)
      const byte = packed[block * BLOCK + (column & 31)] ?? ZERO
      out[row * columns + column] = (byte - ZERO) * (scales[block] ?? 0)
    }
  }
  return out
}
