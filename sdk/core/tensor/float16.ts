/**
 * IEEE half and bfloat16 as bits. Node 20 has no Float16Array, and the bits of a weight must not depend on
 * who converts it, so the rounding (nearest, ties to even) is written out here.
 */

/** One f32 and its bits, for reading the fields of a number. Made per call batch: no module state. */
function createBits(): { float: Float32Array; bits: Uint32Array } {
  const float = new Float32Array(1)
  return { float, bits: new Uint32Array(float.buffer) }
}

/** The f32 bits of half bits. Exact: every half is a float. */
function widen(half: number): number {
  const sign = (half & 0x8000) << 16
  const exponent = (half >> 10) & 0x1f
  const mantissa = half & 0x3ff
  if (exponent === 0x1f) return sign | 0x7f800000 | (mantissa << 13)
  if (exponent !== 0) return sign | ((exponent + 112) << 23) | (mantissa << 13)
  if (mantissa === 0) return sign
  // Subnormal: shift the leading one into the hidden place.
  const shift = Math.clz32(mantissa) - 21
  return sign | ((113 - shift) << 23) | (((mantissa << shift) & 0x3ff) << 13)
}

/** The half bits nearest to f32 bits, ties to even; overflow becomes infinity. */
function narrow(bits: number): number {
  const sign = (bits >>> 16) & 0x8000
  const exponent = (bits >>> 23) & 0xff
  const mantissa = bits & 0x7fffff
  if (exponent === 0xff) return sign | 0x7c00 | (mantissa === 0 ? 0 : 0x200 | (mantissa >> 13))
  const target = exponent - 112
  if (target >= 0x1f) return sign | 0x7c00
  // Below half of the smallest subnormal everything rounds to zero.
  if (target < -10) return sign
  const shift = target > 0 ? 13 : 14 - target
  const full = target > 0 ? mantissa : mantissa | 0x800000
  const kept = full >>> shift
  const rest = full & ((1 << shift) - 1)
  const halfway = 1 << (shift - 1)
  const up = rest > halfway || (rest === halfway && (kept & 1) === 1) ? 1 : 0
  // A carry out of the mantissa lands in the exponent, which is what rounding up means.
  return sign | ((target > 0 ? (target << 10) + kept : kept) + up)
}

export function halfToFloat(half: number): number {
  const { float, bits } = createBits()
  bits[0] = widen(half)
  return float[0] ?? 0
}

export function floatToHalf(value: number): number {
  const { float, bits } = createBits()
  float[0] = value
  return narrow(bits[0] ?? 0)
}

/** f32 values of halves; `out` has the same length. */
export function halvesToFloats(
  halves: Uint16Array,
  out: Float32Array<ArrayBuffer> = new Float32Array(halves.length),
): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(out.buffer, out.byteOffset, out.length)
  for (let i = 0; i < halves.length; i++) bits[i] = widen(halves[i] ?? 0)
  return out
}

/** Half bits of f32 values, nearest, ties to even. */
export function floatsToHalves(values: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length)
  const out = new Uint16Array(values.length)
  for (let i = 0; i < bits.length; i++) out[i] = narrow(bits[i] ?? 0)
  return out
}

/** f32 values of bfloat16 bits: the upper half of an f32. */
export function bfloatsToFloats(bfloats: Uint16Array): Float32Array<ArrayBuffer> {
  const out = new Float32Array(bfloats.length)
  const bits = new Uint32Array(out.buffer)
  for (let i = 0; i < bfloats.length; i++) bits[i] = (bfloats[i] ?? 0) << 16
  return out
}

/** bfloat16 bits of f32 values, nearest, ties to even; NaN stays NaN. */
export function floatsToBfloats(values: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length)
  const out = new Uint16Array(values.length)
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i] ?? 0
    const isNan = (word & 0x7fffffff) > 0x7f800000
    const rounded = word + 0x7fff + ((word >>> 16) & 1)
    out[i] = isNan ? (word >>> 16) | 0x40 : rounded >>> 16
  }
  return out
}
