/** Sizes of one Llama layer. */
export type LayerSizes = {
  readonly hiddenSize: number
  readonly intermediateSize: number
  readonly headCount: number
  readonly kvHeadCount: number
  readonly headSize: number
  readonly ropeTheta: number
  readonly normEpsilon: number
}

/** Matrices as in a weights file: [outputs, inputs], row by row. */
export type LayerWeights = {
  readonly inputNorm: Float32Array
  readonly query: Float32Array
  readonly key: Float32Array
  readonly value: Float32Array
  readonly output: Float32Array
  readonly postNorm: Float32Array
  readonly gate: Float32Array
  readonly up: Float32Array
  readonly down: Float32Array
}

/**
 * One Llama layer in plain arithmetic, in doubles, over a whole sequence at once: what a provider's numbers
 * are compared with. hidden [S, H] at positions 0..S to [S, H].
 */
export function referenceLayer(
  sizes: LayerSizes,
  weights: LayerWeights,
  hidden: Float32Array,
): Float64Array {
  const { hiddenSize, intermediateSize, headCount, kvHeadCount, headSize } = sizes
  const rows = hidden.length / hiddenSize
  const residual = Float64Array.from(hidden)
  const normed = rmsNorm(sizes, residual, weights.inputNorm)
  const project = (matrix: Float32Array, heads: number): Float64Array =>
    multiply(normed, matrix, { rows, inputs: hiddenSize, outputs: heads * headSize })
  const query = project(weights.query, headCount) // [S, heads * D]
  const key = project(weights.key, kvHeadCount) // [S, KV * D]
  rotate(sizes, query, headCount)
  rotate(sizes, key, kvHeadCount)
  const attended = attend(sizes, { query, key, value: project(weights.value, kvHeadCount) })
  const shape = { rows, inputs: headCount * headSize, outputs: hiddenSize }
  add(residual, multiply(attended, weights.output, shape))

  const normedAgain = rmsNorm(sizes, residual, weights.postNorm)
  const wide = { rows, inputs: hiddenSize, outputs: intermediateSize }
  const gate = multiply(normedAgain, weights.gate, wide)
  const up = multiply(normedAgain, weights.up, wide)
  const gated = gate.map((value, i) => (value / (1 + Math.exp(-value))) * at(up, i))
  const narrow = { rows, inputs: intermediateSize, outputs: hiddenSize }
  add(residual, multiply(gated, weights.down, narrow))
  return residual
}

/**
 * Final norm and head for one row, in doubles: hidden [H] to logits [V].
 */
export function referenceHead(
  sizes: Pick<LayerSizes, 'hiddenSize' | 'normEpsilon'>,
  weights: { readonly norm: Float32Array; readonly head: Float32Array },
  hidden: Float32Array,
): Float64Array {
  const { hiddenSize } = sizes
  const normed = rmsNorm(sizes, Float64Array.from(hidden), weights.norm)
  const outputs = weights.head.length / hiddenSize
  return multiply(normed, weights.head, { rows: 1, inputs: hiddenSize, outputs })
}

function rmsNorm(
  sizes: Pick<LayerSizes, 'hiddenSize' | 'normEpsilon'>,
  input: Float64Array,
  scale: Float32Array,
): Float64Array {
  const width = sizes.hiddenSize
  const output = new Float64Array(input.length)
  for (let start = 0; start < input.length; start += width) {
    let sum = 0
    for (let i = 0; i < width; i++) sum += at(input, start + i) ** 2
    const factor = 1 / Math.sqrt(sum / width + sizes.normEpsilon)
    for (let i = 0; i < width; i++) output[start + i] = at(input, start + i) * factor * at(scale, i)
  }
  return output
}

/** input [rows, inputs] times the transpose of matrix [outputs, inputs]. */
function multiply(
  input: Float64Array,
  matrix: Float32Array,
  shape: { readonly rows: number; readonly inputs: number; readonly outputs: number },
): Float64Array {
  const { rows, inputs, outputs } = shape
  const result = new Float64Array(rows * outputs)
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < outputs; column++) {
      let sum = 0
      for (let i = 0; i < inputs; i++) {
        sum += at(input, row * inputs + i) * at(matrix, column * inputs + i)
      }
      result[row * outputs + column] = sum
    }
  }
  return result
}

/** Rotary position embedding in place; the two halves of a head turn together. */
function rotate(sizes: LayerSizes, values: Float64Array, heads: number): void {
  const { headSize, ropeTheta } = sizes
  const half = headSize / 2
  for (let start = 0; start < values.length; start += headSize) {
    const position = Math.floor(start / (heads * headSize))
    for (let i = 0; i < half; i++) {
      const angle = position * ropeTheta ** (-i / half)
      const low = at(values, start + i)
      const high = at(values, start + half + i)
      values[start + i] = low * Math.cos(angle) - high * Math.sin(angle)
      values[start + half + i] = high * Math.cos(angle) + low * Math.sin(angle)
    }
  }
}

/** Causal attention with grouped key and value heads: [S, heads * D]. */
function attend(
  sizes: LayerSizes,
  parts: { readonly query: Float64Array; readonly key: Float64Array; readonly value: Float64Array },
): Float64Array {
  const { headCount, kvHeadCount, headSize } = sizes
  const { query, key, value } = parts
  const width = headCount * headSize
  const kvWidth = kvHeadCount * headSize
  const result = new Float64Array(query.length)
  for (let row = 0; row < query.length / width; row++) {
    for (let head = 0; head < headCount; head++) {
      const from = row * width + head * headSize
      const kvFrom = Math.floor((head * kvHeadCount) / headCount) * headSize
      const weights = Float64Array.from({ length: row + 1 }, (_, past) => {
        let score = 0
        for (let i = 0; i < headSize; i++) {
          score += at(query, from + i) * at(key, past * kvWidth + kvFrom + i)
        }
        return score / Math.sqrt(headSize)
      })
      softmax(weights)
      for (let i = 0; i < headSize; i++) {
        let sum = 0
        for (let past = 0; past <= row; past++) {
          sum += at(weights, past) * at(value, past * kvWidth + kvFrom + i)
        }
        result[from + i] = sum
      }
    }
  }
  return result
}

function softmax(values: Float64Array): void {
  const top = values.reduce((best, value) => Math.max(best, value), -Infinity)
  let sum = 0
  values.forEach((value, i) => {
    values[i] = Math.exp(value - top)
    sum += at(values, i)
  })
  values.forEach((value, i) => {
    values[i] = value / sum
  })
}

function add(target: Float64Array, other: Float64Array): void {
  for (let i = 0; i < target.length; i++) target[i] = at(target, i) + at(other, i)
}

function at(values: Float32Array | Float64Array, index: number): number {
  return values[index] ?? NaN
}
