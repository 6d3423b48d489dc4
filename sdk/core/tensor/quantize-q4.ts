/**
 * 4-bit blocks of 32 along the columns in the layout of ONNX Runtime's MatMulNBits: two columns per byte, low nibble
 * first; per block an f32 scale and an f32 zero point: value = (stored - zero point) * scale.
 */
export const Q4_BLOCK = 32
const BLOCK_BYTES = Q4_BLOCK / 2
/** The zero point of steps from -8 to 7. */
export const Q4_MIDDLE = 8

export type Q4Matrix = {
  /** [rows, blocks, 16]. */
  readonly packed: Uint8Array<ArrayBuffer>
  /** [rows, blocks]. */
  readonly scales: Float32Array<ArrayBuffer>
  /** [rows, blocks]; not whole numbers. */
  readonly zeros: Float32Array<ArrayBuffer>
}

/** Blocks in a row; the last one is padded where the columns don't fill it. */
export function q4Blocks(columns: number): number {
  return Math.ceil(columns / Q4_BLOCK)
}

/**
 * Quantises a row-major [rows, columns] matrix. Of several scales and zero points per block those with the least
 * squared error are kept. What 4 bits hold is kept: blocks of GGUF's Q4_0 exactly, those of Q4_1 and Q4_K, which have
 * an offset, up to the rounding of f32.
 */
export function quantizeQ4(values: Float32Array, rows: number, columns: number): Q4Matrix {
  const blocks = q4Blocks(columns)
  const packed = new Uint8Array(rows * blocks * BLOCK_BYTES)
  const scales = new Float32Array(rows * blocks)
  const zeros = new Float32Array(rows * blocks)
  for (let row = 0; row < rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const from = row * columns + block * Q4_BLOCK
      const length = Math.min(Q4_BLOCK, columns - block * Q4_BLOCK)
      const index = row * blocks + block
      const source = values.subarray(from, from + length)
      const grid = symmetricGrid(source) ?? bestGrid(source)
      scales[index] = grid.scale
      zeros[index] = grid.zero
      pack(source, grid, packed.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES))
    }
  }
  return { packed, scales, zeros }
}

/** Both are f32 values. */
type Grid = { readonly scale: number; readonly zero: number }

/** Fills the 16 bytes of `target`; what `source` lacks becomes a step that nobody multiplies. */
function pack(source: Float32Array, { scale, zero }: Grid, target: Uint8Array): void {
  const inverse = scale === 0 ? 0 : 1 / scale
  for (let i = 0; i < Q4_BLOCK; i++) {
    const at = i < source.length ? step((source[i] ?? 0) * inverse + zero) : Q4_MIDDLE
    const byte = i >>> 1
    target[byte] = (i & 1) === 0 ? at : (target[byte] ?? 0) | (at << 4)
  }
}

/** The nearest whole number from 0 to 15. */
function step(value: number): number {
  if (value <= 0) return 0
  return value >= 15 ? 15 : (value + 0.5) | 0
}

/** Steps from the middle at which the value of largest magnitude lies in files whose steps have no offset. */
const EXTREMES = [-8, -7, 7] as const

/** The grid round zero that holds a block exactly; null where there is none. */
function symmetricGrid(source: Float32Array): Grid | null {
  let extreme = 0
  for (const value of source) if (Math.abs(value) > Math.abs(extreme)) extreme = value
  if (extreme === 0) return { scale: 0, zero: Q4_MIDDLE }
  for (const position of EXTREMES) {
    const grid = { scale: Math.fround(extreme / position), zero: Q4_MIDDLE }
    if (isExact(source, grid)) return grid
  }
  return null
}

function isExact(source: Float32Array, { scale, zero }: Grid): boolean {
  const inverse = 1 / scale
  for (const value of source) {
    if ((step(value * inverse + zero) - zero) * scale !== value) return false
  }
  return true
}

/** Steps between the least and the largest value, tried one after another; more than 15 cuts off both ends. */
const SPANS = [15, 14, 13, 12, 15.6] as const
/** Each time scale and zero point are fitted to the steps that were found. */
const FITS = 3
/** Of a step: what remains where a block lies on such a grid, for the rounding of f32. */
const ON_GRID = 1e-4

/** Of a block whose values differ. */
function bestGrid(source: Float32Array): Grid {
  let low = Infinity
  let high = -Infinity
  for (const value of source) {
    if (value < low) low = value
    if (value > high) high = value
  }
  let best: Grid = { scale: 0, zero: 0 }
  let least = Infinity
  const spanned = SPANS.map((span): Grid => {
    const scale = (high - low) / span
    return roundedGrid(scale, 7.5 - (low + high) / 2 / scale)
  })
  for (const first of [...spanned, roundedGrid((-low > high ? low : high) / -8, Q4_MIDDLE)]) {
    let grid = first
    for (let fit = 0; fit < FITS; fit++) {
      const found = fitGrid(source, grid)
      if (found.error < least) {
        best = grid
        least = found.error
      }
      if (least <= source.length * (ON_GRID * best.scale) ** 2) return best
      grid = found.fitted
    }
  }
  return best
}

function roundedGrid(scale: number, zero: number): Grid {
  return { scale: Math.fround(scale), zero: Math.fround(zero) }
}

/** The squared error of a grid, and the grid that fits its steps best (a line through steps and values). */
function fitGrid(source: Float32Array, grid: Grid): { error: number; fitted: Grid } {
  const { scale, zero } = grid
  const inverse = 1 / scale
  let error = 0
  let steps = 0
  let squares = 0
  let values = 0
  let products = 0
  for (const value of source) {
    const at = step(value * inverse + zero)
    error += (value - (at - zero) * scale) ** 2
    steps += at
    squares += at * at
    values += value
    products += value * at
  }
  const count = source.length
  const spread = squares - (steps * steps) / count
  const slope = spread === 0 ? 0 : (products - (steps * values) / count) / spread
  if (slope === 0) return { error, fitted: grid }
  return { error, fitted: roundedGrid(slope, (steps - values / slope) / count) }
}
