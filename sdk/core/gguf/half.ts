/** The value of half bits at a byte offset, little endian; infinities and NaN stay so. Allocates nothing. */
export function halfAt(bytes: Uint8Array, offset: number): number {
  const bits = bytes[offset]! | (bytes[offset + 1]! << 8)
  const exponent = (bits >> 10) & 0x1f
  const mantissa = bits & 0x3ff
  const sign = bits & 0x8000 ? -1 : 1
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : NaN
  // 2^-24 is the step of subnormals; 1 << exponent is at most 2^30.
  if (exponent === 0) return (sign * mantissa) / 0x1000000
  return (sign * (0x400 | mantissa) * (1 << exponent)) / 0x2000000
}
