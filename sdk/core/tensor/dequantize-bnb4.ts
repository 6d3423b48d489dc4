/** Values of 4-bit codes; from the QLoRA paper (arXiv 2305.14314, appendix E) and the format of bitsandbytes' fp4. */
const NF4 = [
  -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
  -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
  0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
  0.7229568362236023, 1,
] as const
const FP4 = [
  0, 5.208333333e-3, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25, -0, -5.208333333e-3,
  -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25,
] as const

/**
 * The f32 values of a matrix in bitsandbytes' 4-bit form, as MatMulBnb4 of ONNX Runtime has it: two codes a
 * byte, high nibble first, and one largest magnitude for each `blockSize` values.
 */
export function dequantizeBnb4(
  packed: Uint8Array,
  magnitudes: Float32Array,
  options: { readonly count: number; readonly blockSize: number; readonly kind: 'nf4' | 'fp4' },
): Float32Array<ArrayBuffer> {
  const { count, blockSize, kind } = options
  const codes = kind === 'nf4' ? NF4 : FP4
  return Float32Array.from({ length: count }, (_, i) => {
    const byte = packed[i >>> 1] ?? 0
    const code = (i & 1) === 0 ? byte >>> 4 : byte & 15
    return (codes[code] ?? 0) * (magnitudes[Math.floor(i / blockSize)] ?? 0)
  })
}
