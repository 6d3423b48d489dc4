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
 * Quantises a row-major [rows, columns] matrix. For each block several scales are tried and the one with the
 * least squared error is kept; what 4 bits hold exactly (blocks of GGUF's Q4_0) is kept exactly.
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

/**
 * Where the value of largest magnitude comes to lie, in steps: on -8, the one end of the range that has no
 * counterpart, on ±7, or a little in or out, which trades its error against that of the others.
 */
const EXTREMES = [-8, -7, 7, -8.5, -7.5, 7.5, -6.5, -9] as const

/** Fills the 16 bytes of `target`; returns the scale. */
function quantizeBlock(source: Float32Array, target: Uint8Array): number {
  let extreme = 0
  for (const value of source) if (Math.abs(value) > Math.abs(extreme)) extreme = value
  const scale = extreme === 0 ? 0 : bestScale(source, extreme)
  const inverse = scale === 0 ? 0 : 1 / scale
  for (let i = 0; i < BLOCK_BYTES; i++) {
    const low = quantum(source[2 * i] ?? 0, inverse) + 8
    const high = quantum(source[2 * i + 1] ?? 0, inverse) + 8
    target[i] = low | (high << 4)
  }
  return scale
}

/** The first scale without an error, otherwise the one with the least squared error. */
function bestScale(source: Float32Array, extreme: number): number {
  let best = 0
  let least = Infinity
  for (const position of EXTREMES) {
    const error = squaredError(source, Math.fround(extreme / position))
    if (error >= least) continue
    best = Math.fround(extreme / position)
    least = error
    if (error === 0) return best
  }
  const fitted = fittedScale(source, best)
  return squaredError(source, fitted) < least ? fitted : best
}

function squaredError(source: Float32Array, scale: number): number {
  if (scale === 0) return Infinity
  const inverse = 1 / scale
  let sum = 0
  for (const value of source) sum += (value - quantum(value, inverse) * scale) ** 2
  return sum
}

/** The scale that fits the quanta of another one best. */
function fittedScale(source: Float32Array, scale: number): number {
  if (scale === 0) return 0
  const inverse = 1 / scale
  let products = 0
  let squares = 0
  for (const value of source) {
    const steps = quantum(value, inverse)
    products += value * steps
    squares += steps * steps
  }
  return squares === 0 ? 0 : Math.fround(products / squares)
}

/** In steps of the scale, from -8 to 7. */
function quantum(value: number, inverse: number): number {
  return Math.min(7, Math.max(-8, Math.round(value * inverse)))
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
