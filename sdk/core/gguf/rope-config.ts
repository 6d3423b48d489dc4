import type { GgufTensor } from './place-tensors.ts'
import { optionalNumber, refuseUnless, unsupported, type GgufSizes } from './family.ts'

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

/**
 * `rope_theta`, `rope_scaling` and `partial_rotary_factor` as config.json has them.
 * @throws CrowdError model-unsupported for settings that config.json has no like of (the entry is named)
 */
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
  const { short, long, all } = divisors
  checkPairs(sizes, divisors)
  if (short && long) return longRope(sizes, short, long)
  refuseUnless(sizes, 'rope.scaling.attn_factor', [1])
  const plain = plainScaling(sizes)
  if (all === undefined || all.every((divisor) => divisor === 1)) return plain
  if (plain?.['rope_type'] === 'yarn') {
    throw unsupported(sizes.model.file, `${DIVISOR_TENSORS.all} beside yarn`)
  }
  const factor = plain === null ? 1 : linearFactor(sizes)
  const divided = all.map((divisor) => divisor * factor)
  // The same divisors at every length; nothing else changes.
  return {
    rope_type: 'longrope',
    short_factor: divided,
    long_factor: divided,
    attention_factor: 1,
    original_max_position_embeddings: sizes.context,
  }
}

/** LongRoPE's lists belong together, and stand for all frequencies. */
function checkPairs({ model }: GgufSizes, { all, short, long }: RopeDivisors): void {
  if ((short === undefined) !== (long === undefined)) {
    const [there, missing] = short ? (['short', 'long'] as const) : (['long', 'short'] as const)
    throw unsupported(model.file, `${DIVISOR_TENSORS[there]} without ${DIVISOR_TENSORS[missing]}`)
  }
  if (all && short) throw unsupported(model.file, `${DIVISOR_TENSORS.all} beside LongRoPE's`)
}

function longRope(
  sizes: GgufSizes,
  short: readonly number[],
  long: readonly number[],
): Record<string, unknown> {
  const { metadata, file } = sizes.model
  const key = sizes.key('rope.scaling.type')
  const kind = metadata.has(key) ? metadata.text(key) : 'longrope'
  if (kind !== 'longrope' && kind !== 'none') {
    throw unsupported(file, `${key} is ${JSON.stringify(kind)} beside LongRoPE's factors`)
  }
  refuseUnless(sizes, 'rope.scaling.factor', [0, 1])
  refuseYarn(sizes)
  const attention = optionalNumber(sizes, 'rope.scaling.attn_factor')
  return {
    rope_type: 'longrope',
    short_factor: short,
    long_factor: long,
    ...(attention === undefined ? {} : { attention_factor: attention }),
  }
}

/** Without a type llama.cpp takes a factor for a linear one; 0 stands for none. */
function linearFactor(sizes: GgufSizes): number {
  const factor = optionalNumber(sizes, 'rope.scaling.factor')
  return (factor ?? optionalNumber(sizes, 'rope.scale_linear') ?? 1) || 1
}

/** llama.cpp goes by these whatever the type is. */
function refuseYarn(sizes: GgufSizes): void {
  refuseUnless(sizes, 'rope.scaling.yarn_ext_factor', [0, -1])
  refuseUnless(sizes, 'rope.scaling.yarn_attn_factor', [1, -1])
}

function plainScaling(sizes: GgufSizes): Record<string, unknown> | null {
  const { metadata, file } = sizes.model
  const factor = linearFactor(sizes)
  const key = sizes.key('rope.scaling.type')
  const kind = metadata.has(key) ? metadata.text(key) : 'linear'
  if (kind !== 'yarn') refuseYarn(sizes)
  switch (kind) {
    case 'none':
      return null
    case 'linear':
      return factor === 1 ? null : { rope_type: 'linear', factor }
    case 'yarn':
      refuseUnless(sizes, 'rope.scaling.yarn_ext_factor', [1, -1])
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
