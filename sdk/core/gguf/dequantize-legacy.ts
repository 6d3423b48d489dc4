import { halfAt } from './half.ts'

/**
 * Blocks of 32 values with one half as scale (d), some with another as minimum (m). Of the 16 bytes with
 * quanta, byte i holds value i in its low nibble and value i + 16 in its high one. Layouts: ggml's
 * documentation of its types, `ggml-common.h`.
 */
const BLOCK = 32
const HALF = 16

/** d, 16 bytes of nibbles: d × (q - 8). */
export function dequantizeQ4_0(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 18, to += BLOCK) {
    const scale = halfAt(bytes, at)
    for (let i = 0; i < HALF; i++) {
      const byte = bytes[at + 2 + i]!
      out[to + i] = scale * ((byte & 15) - 8)
      out[to + HALF + i] = scale * ((byte >> 4) - 8)
    }
  }
}

/** d, m, 16 bytes of nibbles: d × q + m. */
export function dequantizeQ4_1(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 20, to += BLOCK) {
    const scale = halfAt(bytes, at)
    const minimum = halfAt(bytes, at + 2)
    for (let i = 0; i < HALF; i++) {
      const byte = bytes[at + 4 + i]!
      out[to + i] = scale * (byte & 15) + minimum
      out[to + HALF + i] = scale * (byte >> 4) + minimum
    }
  }
}

/** d, 32 fifth bits, 16 bytes of nibbles: d × (q - 16). */
export function dequantizeQ5_0(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 22, to += BLOCK) {
    const scale = halfAt(bytes, at)
    const high = wordAt(bytes, at + 2)
    for (let i = 0; i < HALF; i++) {
      const byte = bytes[at + 6 + i]!
      out[to + i] = scale * (((byte & 15) | (((high >>> i) & 1) << 4)) - 16)
      out[to + HALF + i] = scale * (((byte >> 4) | (((high >>> (i + HALF)) & 1) << 4)) - 16)
    }
  }
}

/** d, m, 32 fifth bits, 16 bytes of nibbles: d × q + m. */
export function dequantizeQ5_1(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 24, to += BLOCK) {
    const scale = halfAt(bytes, at)
    const minimum = halfAt(bytes, at + 2)
    const high = wordAt(bytes, at + 4)
    for (let i = 0; i < HALF; i++) {
      const byte = bytes[at + 8 + i]!
      out[to + i] = scale * ((byte & 15) | (((high >>> i) & 1) << 4)) + minimum
      out[to + HALF + i] = scale * ((byte >> 4) | (((high >>> (i + HALF)) & 1) << 4)) + minimum
    }
  }
}

/** d, 32 signed bytes: d × q. */
export function dequantizeQ8_0(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 34, to += BLOCK) {
    const scale = halfAt(bytes, at)
    for (let i = 0; i < BLOCK; i++) out[to + i] = scale * ((bytes[at + 2 + i]! << 24) >> 24)
  }
}

/** The 16 levels of the non-linear 4-bit types. */
const LEVELS: readonly number[] = [
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
]

/** d, 16 bytes of nibbles: d × level(q). */
export function dequantizeIQ4_NL(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 18, to += BLOCK) {
    const scale = halfAt(bytes, at)
    for (let i = 0; i < HALF; i++) {
      const byte = bytes[at + 2 + i]!
      out[to + i] = scale * LEVELS[byte & 15]!
      out[to + HALF + i] = scale * LEVELS[byte >> 4]!
    }
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}
