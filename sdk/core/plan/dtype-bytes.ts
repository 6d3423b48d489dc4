/**
 * Bytes of a weight by dtype, scales included: 4 and 8 bits have one f32 scale for 32 weights. Norms stay f32; they
 * are too few to count.
 */
export const BYTES_PER_WEIGHT = { q4: 0.625, q8: 1.125, f16: 2, f32: 4 } as const
