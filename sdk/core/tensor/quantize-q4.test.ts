import { describe, expect, it } from 'vitest'
import { dequantizeQ4, q4Blocks, quantizeQ4 } from './quantize-q4.ts'

describe('q4', () => {
  it('packs two columns per byte, low nibble first, with zero at 8', () => {
    const row = Float32Array.from({ length: 32 }, (_, i) => (i % 16) - 8)
    const { packed, scales } = quantizeQ4(row, 1, 32)
    expect([...scales]).toEqual([1])
    expect([...packed.subarray(0, 8)]).toEqual([0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe])
    expect([...dequantizeQ4(packed, scales, 1, 32)]).toEqual([...row])
  })

  it('keeps what 4 bits hold exactly, whichever end of the range is used', () => {
    // As llama.cpp writes them, and as who uses -7 to 7 only.
    for (const [low, scale] of [
      [-8, 0.0123291015625],
      [-7, -0.3701171875],
    ] as const) {
      const row = Float32Array.from({ length: 32 }, (_, i) => scale * (low + ((i * 5) % (8 - low))))
      const { packed, scales } = quantizeQ4(row, 1, 32)
      expect(dequantizeQ4(packed, scales, 1, 32)).toEqual(row)
    }
  })

  it('errs less than with the one scale that reaches the value of largest magnitude', () => {
    const values = Float32Array.from({ length: 96 * 8 }, (_, i) => Math.sin(i * 12.9898) ** 5)
    const { packed, scales } = quantizeQ4(values, 8, 96)
    const back = dequantizeQ4(packed, scales, 8, 96)
    let plain = 0
    for (let from = 0; from < values.length; from += 32) {
      const block = values.subarray(from, from + 32)
      const extreme = block.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a))
      const step = extreme / -8
      const errors = block.map((value) => value - step * Math.min(7, Math.round(value / step)))
      const squares = (list: Float32Array): number => list.reduce((sum, e) => sum + e * e, 0)
      plain += squares(errors)
      const own = squares(block.map((value, i) => value - back[from + i]!))
      expect(own).toBeLessThanOrEqual(squares(errors) * (1 + 1e-6))
    }
    const own = values.reduce((sum, value, i) => sum + (value - back[i]!) ** 2, 0)
    expect(own).toBeLessThan(plain * 0.85)
  })

  it('pads the last block of a row and keeps an all-zero block at zero', () => {
    const columns = 40
    const values = new Float32Array(2 * columns)
    values[columns + 39] = -4
    const { packed, scales } = quantizeQ4(values, 2, columns)
    expect(q4Blocks(columns)).toBe(2)
    expect(packed.length).toBe(2 * 2 * 16)
    expect([...scales]).toEqual([0, 0, 0, 0.5])
    expect([...dequantizeQ4(packed, scales, 2, columns)].map((v) => v + 0)).toEqual([...values])
  })
})
