import type { FamilyRow } from './compare.ts'

type Stored = Pick<FamilyRow, 'family' | 'source' | 'dtype'>

/** Rounding of f32 in another order. */
const F32 = 1e-4
/** Weights as published, apart from the norms of GGUF files, which are f32 there. */
const F16 = 0.2
/** Weights lose less than a 250th, and the kernels take activations as int8, layer by layer. */
const Q8 = 0.6
/** As q8; the checkpoints' matrices lie on a 4-bit grid, so that weights lose nothing. */
const Q4 = 1.2
/** These lie on none, and quantising loses more than products do; nor do GGUF files of other types. */
const OFF_GRID = ['llama', 'llama-sharded-bf16']

/** How far logits may be from the reference's; null where only the comparison of whole and split counts. */
export function toleranceOf({ family, source, dtype }: Stored): number | null {
  if (source === 'onnx') return /f(p)?16$/.test(dtype) ? 0.02 : F32
  switch (dtype) {
    case 'f32':
      return F32
    case 'f16':
      return F16
    case 'q8':
      return Q8
    default:
      return source === 'gguf' || OFF_GRID.includes(family) ? null : Q4
  }
}

/** Whether a row is as it must be: what is kept as published gives the same text, and nothing strays. */
export function isRight(row: FamilyRow): boolean {
  const { source, dtype, greedyAgreement, splitEqualsWhole, maxLogitError } = row
  const tolerance = toleranceOf(row)
  // A NaN is within no tolerance.
  const isNear = tolerance === null || maxLogitError <= tolerance
  return splitEqualsWhole && isNear && greedyAgreement >= leastAgreement(source, dtype, tolerance)
}

/** Quantised weights may choose another token now and then, where two are nearly alike. */
function leastAgreement(
  source: FamilyRow['source'],
  dtype: string,
  tolerance: number | null,
): number {
  if (dtype === 'f32' || source === 'onnx') return 1
  return tolerance === null ? 0 : 0.85
}
