/**
 * 4-bit blocks of 32 along the columns, symmetric, in the layout of ONNX Runtime's MatMulNBits: two
 * columns per byte, low nibble first, stored value = quantum + 8; one f32 scale per block.
 */
export const Q4_BLOCK = 32
const BLOCK_BYTES = Q4_BLOCK / 2

export type Q4Matrix = {
  /** [rows, blocks, 16]. */
  readonly packed: Uint8Array<ArrayBuffer>
  /** [rows, blocks]. */
  readonly scales: Float32Array<ArrayBuffer>
}

/** Blocks in a row; the last one is padded with zeros where the columns don't fill it. */
export function q4Blocks(columns: number): number {
  return Math.ceil(columns / Q4_BLOCK)
}

/**
 * Quantises a row-major [rows, columns] matrix. The scale takes the value of largest magnitude to -8, the
 * one end of the range that has no counterpart, so all 16 levels are used.
 */
export function quantizeQ4(values: Float32Array, rows: number, columns: number): Q4Matrix {
  const blocks = q4Blocks(columns)
  const packed = new Uint8Array(rows * blocks * BLOCK_BYTES)
  const scales = new Float32Array(rows * blocks)
  for (let row = 0; row < rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const from = row * columns + block * Q4_BLOCK
      const length = Math.min(Q4_BLOCK, columns - block * Q4_BLOCK)
      const index = row * blocks + block
      const source = values.subarray(from, from + length)
      const target = packed.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES)
      scales[index] = quantizeBlock(source, target)
    }
  }
  return { packed, scales }
}

/** Fills the 16 bytes of `target`; returns the scale. */
function quantizeBlock(source: Float32Array, target: Uint8Array): number {
  let extreme = 0
  for (const value of source) if (Math.abs(value) > Math.abs(extreme)) extreme = value
  const scale = Math.fround(extreme / -8)
  const inverse = scale === 0 ? 0 : 1 / scale
  for (let i = 0; i < BLOCK_BYTES; i++) {
    const low = quantum(source[2 * i] ?? 0, inverse)
    const high = quantum(source[2 * i + 1] ?? 0, inverse)
    target[i] = low | (high << 4)
  }
  return scale
}

function quantum(value: number, inverse: number): number {
  return Math.min(15, Math.max(0, Math.round(value * inverse) + 8))
}

/** The f32 values [rows, columns] of a quantised matrix. */
export function dequantizeQ4(
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
      const byte = packed[block * BLOCK_BYTES + ((column & 31) >>> 1)] ?? 0
      const nibble = (column & 1) === 0 ? byte & 15 : byte >>> 4
      out[row * columns + column] = (nibble - 8) * (scales[block] ?? 0)
    }
  }
  return out
}
