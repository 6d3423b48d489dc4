import { halfAt } from './half.ts'

/**
 * The "K" types: blocks of 256 values in groups of 16 or 32 that have small integer scales of their own,
 * times one half for the block. Layouts: ggml's documentation of its types, `ggml-common.h`.
 */
const BLOCK = 256

/** 16 bytes of scale (low nibble) and minimum, 64 bytes of 2-bit quanta, d, dmin. Groups of 16. */
export function dequantizeQ2_K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 84, to += BLOCK) {
    const scale = halfAt(bytes, at + 80)
    const minimum = halfAt(bytes, at + 82)
    for (let group = 0; group < 16; group++) {
      const packed = bytes[at + group]!
      const d = scale * (packed & 15)
      const m = minimum * (packed >> 4)
      const { from, shift } = twoBits(group)
      for (let i = 0; i < 16; i++) {
        out[to + group * 16 + i] = d * ((bytes[at + 16 + from + i]! >> shift) & 3) - m
      }
    }
  }
}

/** 32 bytes of third bits, 64 bytes of 2-bit quanta, 12 bytes of sixteen 6-bit scales, d. Groups of 16. */
export function dequantizeQ3_K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 110, to += BLOCK) {
    const scale = halfAt(bytes, at + 108)
    for (let group = 0; group < 16; group++) {
      const low = (bytes[at + 96 + (group & 7)]! >> (group < 8 ? 0 : 4)) & 15
      const high = (bytes[at + 104 + (group & 3)]! >> (2 * (group >> 2))) & 3
      const d = scale * ((low | (high << 4)) - 32)
      const { from, shift } = twoBits(group)
      const bit = group >> 1
      for (let i = 0; i < 16; i++) {
        const quantum = (bytes[at + 32 + from + i]! >> shift) & 3
        // A third bit that is not set means minus four.
        const third = (bytes[at + 16 * (group & 1) + i]! >> bit) & 1
        out[to + group * 16 + i] = d * (quantum - (third === 1 ? 0 : 4))
      }
    }
  }
}

/** Where the 2-bit quanta of a group of 16 lie: 32 bytes hold four runs of 32 values, two bits each. */
function twoBits(group: number): { from: number; shift: number } {
  return { from: 32 * (group >> 3) + 16 * (group & 1), shift: 2 * ((group >> 1) & 3) }
}

/** d, dmin, 12 bytes of eight 6-bit scales and minima, 128 bytes of nibbles. Groups of 32. */
export function dequantizeQ4_K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 144, to += BLOCK) {
    const scale = halfAt(bytes, at)
    const minimum = halfAt(bytes, at + 2)
    for (let group = 0; group < 8; group++) {
      const d = scale * scaleAt(bytes, at + 4, group)
      const m = minimum * minimumAt(bytes, at + 4, group)
      const from = at + 16 + 32 * (group >> 1)
      const shift = (group & 1) * 4
      for (let i = 0; i < 32; i++) {
        out[to + group * 32 + i] = d * ((bytes[from + i]! >> shift) & 15) - m
      }
    }
  }
}

/** As Q4_K, with 32 bytes of fifth bits before the nibbles: bit g of byte i belongs to value i of group g. */
export function dequantizeQ5_K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 176, to += BLOCK) {
    const scale = halfAt(bytes, at)
    const minimum = halfAt(bytes, at + 2)
    for (let group = 0; group < 8; group++) {
      const d = scale * scaleAt(bytes, at + 4, group)
      const m = minimum * minimumAt(bytes, at + 4, group)
      const from = at + 48 + 32 * (group >> 1)
      const shift = (group & 1) * 4
      for (let i = 0; i < 32; i++) {
        const high = (bytes[at + 16 + i]! >> group) & 1
        out[to + group * 32 + i] = d * (((bytes[from + i]! >> shift) & 15) | (high << 4)) - m
      }
    }
  }
}

/** The first four 6-bit scales are whole; of the last four, two bits lie above the first four. */
function scaleAt(bytes: Uint8Array, at: number, group: number): number {
  if (group < 4) return bytes[at + group]! & 63
  return (bytes[at + 4 + group]! & 15) | ((bytes[at + group - 4]! >> 6) << 4)
}

function minimumAt(bytes: Uint8Array, at: number, group: number): number {
  if (group < 4) return bytes[at + 4 + group]! & 63
  return (bytes[at + 4 + group]! >> 4) | ((bytes[at + group]! >> 6) << 4)
}

/** 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, d. Groups of 16. */
export function dequantizeQ6_K(bytes: Uint8Array, out: Float32Array): void {
  for (let at = 0, to = 0; to < out.length; at += 210, to += BLOCK) {
    const scale = halfAt(bytes, at + 208)
    // Runs of 32 values: in each half of the block, two share 64 bytes of nibbles, four 32 bytes of pairs.
    for (let run = 0; run < 8; run++) {
      const half = run >> 2
      const low = at + 64 * half + 32 * (run & 1)
      const lowShift = (run & 2) * 2
      const high = at + 128 + 32 * half
      const highShift = 2 * (run & 3)
      for (let i = 0; i < 32; i++) {
        const quantum =
          ((bytes[low + i]! >> lowShift) & 15) | (((bytes[high + i]! >> highShift) & 3) << 4)
        const d = (bytes[at + 192 + 2 * run + (i >> 4)]! << 24) >> 24
        out[to + run * 32 + i] = scale * d * (quantum - 32)
      }
    }
  }
}
