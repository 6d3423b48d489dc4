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

/**
 * Quantises a row-major [rows, columns] matrix. The value of largest magnitude becomes ±127, or -128 where
 * that errs less: so what llama.cpp's Q8_0 or what 4 bits hold exactly (-8 among them) is kept exactly.
 */
export function quantizeQ8(values: Float32Array, rows: number, columns: number): Q8Matrix {
  const blocks = q4Blocks(columns)
  const packed = new Uint8Array(rows * blocks * BLOCK).fill(ZERO)
  const scales = new Float32Array(rows * blocks)
  for (let row = 0; row < rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const from = row * columns + block * BLOCK
      const length = Math.min(BLOCK, columns - block * BLOCK)
      const source = values.subarray(from, from + length)
      const index = row * blocks + block
      const scale = bestScale(source)
      const inverse = scale === 0 ? 0 : 1 / scale
      scales[index] = scale
      source.forEach((value, i) => {
        packed[index * BLOCK + i] = quantum(value, inverse) + ZERO
      })
    }
  }
  return { packed, scales }
}

function bestScale(source: Float32Array): number {
  let extreme = 0
  for (const value of source) if (Math.abs(value) > Math.abs(extreme)) extreme = value
  const even = Math.fround(Math.abs(extreme) / 127)
  const error = squaredError(source, even)
  if (error === 0) return even
  const lopsided = Math.fround(extreme / -128)
  return squaredError(source, lopsided) < error ? lopsided : even
}

function squaredError(source: Float32Array, scale: number): number {
  const inverse = scale === 0 ? 0 : 1 / scale
  let sum = 0
  for (const value of source) sum += (value - quantum(value, inverse) * scale) ** 2
  return sum
}

/** In steps of the scale. */
function quantum(value: number, inverse: number): number {
  return Math.min(127, Math.max(-128, Math.round(value * inverse)))
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
