/** How positions become angles (Su et al. 2021), and how a longer context is reached. */
export type RopeParams = {
  readonly theta: number
  /** Values of a head that are rotated: all, or the first ones. Even. */
  readonly size: number
  readonly scaling: RopeScaling
}

export type RopeScaling =
  | { readonly kind: 'none' }
  | { readonly kind: 'linear'; readonly factor: number }
  /** Llama 3 (arXiv 2407.21783 and its code). */
  | {
      readonly kind: 'llama3'
      readonly factor: number
      readonly lowFrequencyFactor: number
      readonly highFrequencyFactor: number
      readonly originalContext: number
    }
  /** YaRN (arXiv 2309.00071). */
  | {
      readonly kind: 'yarn'
      readonly factor: number
      readonly originalContext: number
      readonly betaFast: number
      readonly betaSlow: number
      /** Whether the borders of the ramp are rounded to whole pairs. */
      readonly truncate: boolean
      readonly attentionFactor: number
    }
  /** One divisor per pair (LongRoPE, arXiv 2402.13753). */
  | {
      readonly kind: 'divisors'
      readonly divisors: readonly number[]
      readonly attentionFactor: number
    }

/** What cosines and sines are multiplied by. */
export function attentionFactor({ scaling }: RopeParams): number {
  return 'attentionFactor' in scaling ? scaling.attentionFactor : 1
}

/** Radians per position, f32 [size / 2]. */
export function inverseFrequencies(rope: RopeParams): Float32Array<ArrayBuffer> {
  const { scaling, size, theta } = rope
  const ramp = scaling.kind === 'yarn' ? yarnRamp(rope, scaling) : null
  return Float32Array.from({ length: size / 2 }, (_, pair) => {
    const plain = Math.fround(1 / theta ** ((2 * pair) / size))
    switch (scaling.kind) {
      case 'none':
        return plain
      case 'linear':
        return plain / scaling.factor
      case 'divisors':
        return plain / (scaling.divisors[pair] ?? 1)
      case 'llama3': {
        const turns = (scaling.originalContext * plain) / (2 * Math.PI)
        const { lowFrequencyFactor: low, highFrequencyFactor: high } = scaling
        const blend = clamped((turns - low) / (high - low))
        return (1 - blend) * (plain / scaling.factor) + blend * plain
      }
      case 'yarn': {
        const stretched = ramp?.(pair) ?? 0
        return stretched * (plain / scaling.factor) + (1 - stretched) * plain
      }
    }
  })
}

/** How much of a pair's frequency is interpolated: 0 for the fast ones, 1 for the slow ones. */
function yarnRamp(
  { theta, size }: RopeParams,
  scaling: RopeScaling & { kind: 'yarn' },
): (pair: number) => number {
  const pairOf = (turns: number): number =>
    (size * Math.log(scaling.originalContext / (turns * 2 * Math.PI))) / (2 * Math.log(theta))
  const { truncate } = scaling
  const fast = pairOf(scaling.betaFast)
  const slow = pairOf(scaling.betaSlow)
  const low = Math.max(0, truncate ? Math.floor(fast) : fast)
  const high = Math.min(size - 1, truncate ? Math.ceil(slow) : slow)
  // The reference widens an empty ramp by a thousandth.
  const width = high === low ? 0.001 : high - low
  return (pair) => clamped((pair - low) / width)
}

function clamped(value: number): number {
  return Math.min(1, Math.max(0, value))
}
