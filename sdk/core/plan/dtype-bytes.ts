import { tableDtype, type Block, type WeightDtype } from '../model/manifest.ts'

/**
 * Bytes of a weight of a layer, f32 scales of 32 weights included, in q4 zero points too. Norms stay f32, and so do the
 * routers of mixtures; both are too few to count.
 */
const LAYER_BYTES = { q4: 0.75, q8: 1.125, f16: 2, f32: 4 } as const

/** Of the embedding's table and the head as they are kept in a model of that dtype, or of a layer. */
export function bytesPerWeight(dtype: WeightDtype, kind: Block['kind']): number {
  return LAYER_BYTES[kind === 'layer' ? dtype : tableDtype(dtype)]
}
