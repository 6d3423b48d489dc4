import type { LlamaConfig } from '../../sdk/core/families/llama-config.ts'

type Weights = (name: string) => ArrayLike<number>

/**
 * Llama in plain f64 arithmetic, written from the model's description and sharing nothing with the graphs:
 * what both sides of the other comparisons could get wrong in the same way shows here. It recomputes
 * everything for every call.
 * @returns the logits after the last token, [V]
 */
export function referenceLogits(
  config: LlamaConfig,
  weights: Weights,
  ids: readonly number[],
): Float64Array<ArrayBuffer> {
  const { hiddenSize, layerCount } = config
  const table = weights('model.embed_tokens.weight')
  let states = ids.map((id) =>
    Float64Array.from({ length: hiddenSize }, (_, i) => table[id * hiddenSize + i]!),
  )
  for (let layer = 0; layer < layerCount; layer++) {
    const part = (name: string): ArrayLike<number> =>
      weights(`model.layers.${layer}.${name}.weight`)
    const attended = attention(
      config,
      part,
      states.map((state) => rmsNorm(state, part('input_layernorm'), config.normEpsilon)),
    )
    states = states.map((state, i) => sum(state, attended[i]!))
    states = states.map((state) => {
      const normed = rmsNorm(state, part('post_attention_layernorm'), config.normEpsilon)
      return sum(state, mlp(part, normed))
    })
  }
  const last = rmsNorm(states.at(-1)!, weights('model.norm.weight'), config.normEpsilon)
  const head = config.tiedEmbedding ? table : weights('lm_head.weight')
  return multiply(head, last)
}

function multiply(
  matrix: ArrayLike<number>,
  vector: Float64Array<ArrayBuffer>,
): Float64Array<ArrayBuffer> {
  const columns = vector.length
  return Float64Array.from({ length: matrix.length / columns }, (_, row) => {
    let total = 0
    for (let i = 0; i < columns; i++) total += matrix[row * columns + i]! * vector[i]!
    return total
  })
}

function sum(
  a: Float64Array<ArrayBuffer>,
  b: Float64Array<ArrayBuffer>,
): Float64Array<ArrayBuffer> {
  return a.map((value, i) => value + b[i]!)
}

function rmsNorm(
  state: Float64Array<ArrayBuffer>,
  weight: ArrayLike<number>,
  epsilon: number,
): Float64Array<ArrayBuffer> {
  const square = state.reduce((total, value) => total + value * value, 0) / state.length
  return state.map((value, i) => (value / Math.sqrt(square + epsilon)) * weight[i]!)
}

function mlp(part: Weights, normed: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const gate = multiply(part('mlp.gate_proj'), normed)
  const up = multiply(part('mlp.up_proj'), normed)
  const inner = gate.map((value, i) => (value / (1 + Math.exp(-value))) * up[i]!)
  return multiply(part('mlp.down_proj'), inner)
}

function attention(
  config: LlamaConfig,
  part: Weights,
  normed: readonly Float64Array<ArrayBuffer>[],
): Float64Array<ArrayBuffer>[] {
  const { headCount, kvHeadCount, headSize } = config
  const queries = normed.map((state, position) =>
    rotate(config, multiply(part('self_attn.q_proj'), state), position),
  )
  const keys = normed.map((state, position) =>
    rotate(config, multiply(part('self_attn.k_proj'), state), position),
  )
  const values = normed.map((state) => multiply(part('self_attn.v_proj'), state))
  return queries.map((query, position) => {
    const mixed = new Float64Array(headCount * headSize)
    for (let head = 0; head < headCount; head++) {
      const shared = Math.floor((head * kvHeadCount) / headCount)
      const scores = keys.slice(0, position + 1).map((key) => {
        let score = 0
        for (let i = 0; i < headSize; i++) {
          score += query[head * headSize + i]! * key[shared * headSize + i]!
        }
        return score / Math.sqrt(headSize)
      })
      const top = Math.max(...scores)
      const shares = scores.map((score) => Math.exp(score - top))
      const total = shares.reduce((a, b) => a + b)
      shares.forEach((share, j) => {
        for (let i = 0; i < headSize; i++) {
          mixed[head * headSize + i]! += (share / total) * values[j]![shared * headSize + i]!
        }
      })
    }
    return multiply(part('self_attn.o_proj'), mixed)
  })
}

/** Turns the pair (i, i + headSize / 2) of every head by position × frequency. */
function rotate(
  config: LlamaConfig,
  vector: Float64Array<ArrayBuffer>,
  position: number,
): Float64Array<ArrayBuffer> {
  const { headSize } = config
  const half = headSize / 2
  return vector.map((value, i) => {
    const pair = (i % headSize) % half
    const angle = position * frequency(config, pair)
    const isFirst = i % headSize < half
    const other = vector[isFirst ? i + half : i - half]!
    return value * Math.cos(angle) + (isFirst ? -other : other) * Math.sin(angle)
  })
}

function frequency({ rope, headSize }: LlamaConfig, pair: number): number {
  const plain = rope.theta ** ((-2 * pair) / headSize)
  const { scaling } = rope
  if (scaling.kind === 'none') return plain
  if (scaling.kind === 'linear') return plain / scaling.factor
  if (scaling.kind !== 'llama3') throw new Error(`no plain arithmetic for ${scaling.kind}`)
  const wavelength = (2 * Math.PI) / plain
  if (wavelength < scaling.originalContext / scaling.highFrequencyFactor) return plain
  if (wavelength > scaling.originalContext / scaling.lowFrequencyFactor) {
    return plain / scaling.factor
  }
  const smooth =
    (scaling.originalContext / wavelength - scaling.lowFrequencyFactor) /
    (scaling.highFrequencyFactor - scaling.lowFrequencyFactor)
  return ((1 - smooth) * plain) / scaling.factor + smooth * plain
}
