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

  it('errs by at most one step where the range is lopsided, half a step elsewhere', () => {
    const rows = 5
    const columns = 96
    const values = Float32Array.from(
      { length: rows * columns },
      (_, i) => Math.sin(i * 12.9898) * 3,
    )
    const { packed, scales } = quantizeQ4(values, rows, columns)
    const back = dequantizeQ4(packed, scales, rows, columns)
    for (let i = 0; i < values.length; i++) {
      const step = Math.abs(scales[Math.floor(i / 32)]!)
      const opposite = Math.abs(values[i]!) > 7.5 * step
      expect(Math.abs(values[i]! - back[i]!)).toBeLessThanOrEqual((opposite ? 1 : 0.5001) * step)
    }
  })

  it('pads the last block of a row and keeps an all-zero block at zero', () => {
    const columns = 40
    const values = new Float32Array(2 * columns)
    values[columns + 39] = -4
    const { packed, scales } = quantizeQ4(values, 2, columns)
    expect(q4Blocks(columns)).toBe(2)
    expect(packed.length).toBe(2 * 2 * 16)
    expect([...scales]).toEqual([-0, -0, -0, 0.5])
    expect([...dequantizeQ4(packed, scales, 2, columns)].map((v) => v + 0)).toEqual([...values])
  })
})
