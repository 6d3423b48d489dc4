import type { GgufTensor } from './place-tensors.ts'
import { optionalNumber, unsupported, type GgufSizes } from './family.ts'

/** Divisors of the rotary frequencies that a file holds as tensors, one per pair. */
export type RopeDivisors = {
  /** `rope_freqs.weight`: Llama 3's scaling, worked out. */
  readonly all?: readonly number[]
  /** `rope_factors_short.weight` and `rope_factors_long.weight`: LongRoPE. */
  readonly short?: readonly number[]
  readonly long?: readonly number[]
}

const DIVISOR_TENSORS = {
  all: 'rope_freqs.weight',
  short: 'rope_factors_short.weight',
  long: 'rope_factors_long.weight',
} as const

/** The tensors of a file that hold divisors. */
export function ropeTensors(
  tensors: ReadonlyMap<string, GgufTensor>,
): (readonly [keyof RopeDivisors, GgufTensor])[] {
  // Cast: Object.entries forgets the keys.
  const names = Object.entries(DIVISOR_TENSORS) as [keyof RopeDivisors, string][]
  return names.flatMap(([kind, name]) => {
    const tensor = tensors.get(name)
    return tensor ? [[kind, tensor] as const] : []
  })
}

export function isRopeTensor(name: string): boolean {
  return Object.values(DIVISOR_TENSORS).some((own) => own === name)
}

/** `rope_theta`, `rope_scaling` and `partial_rotary_factor` as config.json has them. */
export function ropeConfig(sizes: GgufSizes, divisors: RopeDivisors): Record<string, unknown> {
  const rotated = optionalNumber(sizes, 'rope.dimension_count') ?? sizes.headSize
  const scaling = ropeScaling(sizes, divisors)
  const original = optionalNumber(sizes, 'rope.scaling.original_context_length')
  return {
    rope_theta: optionalNumber(sizes, 'rope.freq_base') ?? 10_000,
    ...(rotated === sizes.headSize ? {} : { partial_rotary_factor: rotated / sizes.headSize }),
    ...(scaling === null ? {} : { rope_scaling: scaling }),
    ...(divisors.long && original !== undefined
      ? { original_max_position_embeddings: original }
      : {}),
  }
}

function ropeScaling(sizes: GgufSizes, divisors: RopeDivisors): Record<string, unknown> | null {
  const attention = optionalNumber(sizes, 'rope.scaling.attn_factor')
  if (divisors.short && divisors.long) {
    return {
      rope_type: 'longrope',
      short_factor: divisors.short,
      long_factor: divisors.long,
      ...(attention === undefined ? {} : { attention_factor: attention }),
    }
  }
  if (divisors.all) {
    if (divisors.all.every((divisor) => divisor === 1)) return null
    // The same divisors at every length; nothing else changes.
    return {
      rope_type: 'longrope',
      short_factor: divisors.all,
      long_factor: divisors.all,
      attention_factor: 1,
      original_max_position_embeddings: sizes.context,
    }
  }
  return plainScaling(sizes)
}

function plainScaling(sizes: GgufSizes): Record<string, unknown> | null {
  const { metadata, file } = sizes.model
  const linear = optionalNumber(sizes, 'rope.scale_linear')
  const factor = optionalNumber(sizes, 'rope.scaling.factor') ?? linear ?? 1
  const key = sizes.key('rope.scaling.type')
  const kind = metadata.has(key) ? metadata.text(key) : linear === undefined ? 'none' : 'linear'
  switch (kind) {
    case 'none':
      return null
    case 'linear':
      return factor === 1 ? null : { rope_type: 'linear', factor }
    case 'yarn':
      return {
        rope_type: 'yarn',
        factor,
        original_max_position_embeddings:
          optionalNumber(sizes, 'rope.scaling.original_context_length') ?? sizes.context,
        beta_fast: optionalNumber(sizes, 'rope.scaling.yarn_beta_fast') ?? 32,
        beta_slow: optionalNumber(sizes, 'rope.scaling.yarn_beta_slow') ?? 1,
        ...attentionFactor(optionalNumber(sizes, 'rope.scaling.yarn_attn_factor')),
      }
    default:
      throw unsupported(file, `${key} is ${JSON.stringify(kind)} without its factors`)
  }
}

function attentionFactor(value: number | undefined): Record<string, unknown> {
  return value === undefined ? {} : { attention_factor: value }
}
