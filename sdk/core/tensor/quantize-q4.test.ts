import { describe, expect, it } from 'vitest'
import { dequantizeBlocks } from './dequantize-blocks.ts'
import { Q4_BLOCK, q4Blocks, quantizeQ4 } from './quantize-q4.ts'

/** There and back. */
function rounded(values: Float32Array, rows: number, columns: number): Float32Array {
  const shape = { rows, columns, bits: 4, blockSize: Q4_BLOCK }
  return dequantizeBlocks({ ...quantizeQ4(values, rows, columns), shape })
}

function squares(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0)
}

describe('q4', () => {
  it('packs two columns per byte, low nibble first', () => {
    const row = Float32Array.from({ length: 32 }, (_, i) => (i % 16) - 8)
    const { packed, scales, zeros } = quantizeQ4(row, 1, 32)
    expect([...scales, ...zeros]).toEqual([1, 8])
    expect([...packed.subarray(0, 8)]).toEqual([0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe])
    expect([...rounded(row, 1, 32)]).toEqual([...row])
  })

  it('keeps what 4 bits hold exactly, whichever end of the range is used', () => {
    // As llama.cpp writes them, and as who uses -7 to 7 only.
    for (const [low, scale] of [
      [-8, 0.0123291015625],
      [-7, -0.3701171875],
    ] as const) {
      const row = Float32Array.from({ length: 32 }, (_, i) => scale * (low + ((i * 5) % (8 - low))))
      expect([...quantizeQ4(row, 1, 32).zeros]).toEqual([8])
      expect(rounded(row, 1, 32)).toEqual(row)
    }
  })

  it.each([
    ['all 16 steps', 0, 16],
    ['15 of them', 1, 15],
    ['the upper 13', 3, 13],
    ['the lower 13', 0, 13],
  ])('keeps steps with an offset, as GGUF has them in Q4_1 and Q4_K: %s', (_name, first, count) => {
    const offset = -0.0317
    const row = Float32Array.from({ length: 32 }, (_, i) => {
      return 0.00421 * (first + ((i * 7) % count)) + offset
    })
    const back = rounded(row, 1, 32)
    row.forEach((value, i) => {
      expect(Math.abs(value - back[i]!)).toBeLessThan(1e-8)
    })
  })

  it('errs less than the one scale that reaches the value of largest magnitude', () => {
    const values = Float32Array.from({ length: 96 * 8 }, (_, i) => Math.sin(i * 12.9898) ** 5)
    const back = rounded(values, 8, 96)
    let plain = 0
    for (let from = 0; from < values.length; from += 32) {
      const block = values.subarray(from, from + 32)
      const extreme = block.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a))
      const scale = extreme / -8
      const steps = block.map((value) => scale * Math.min(7, Math.round(value / scale)))
      plain += squares(block, steps)
      const own = squares(block, back.subarray(from, from + 32))
      expect(own).toBeLessThanOrEqual(squares(block, steps) * (1 + 1e-6))
    }
    expect(squares(values, back)).toBeLessThan(plain * 0.85)
  })

  it('pads the last block of a row and keeps an all-zero block at zero', () => {
    const columns = 40
    const values = new Float32Array(2 * columns)
    values[columns + 39] = -4
    const { packed, scales, zeros } = quantizeQ4(values, 2, columns)
    expect(q4Blocks(columns)).toBe(2)
    expect(packed.length).toBe(2 * 2 * 16)
    expect([...scales]).toEqual([0, 0, 0, 0.5])
    expect([...zeros]).toEqual([8, 8, 8, 8])
    expect([...rounded(values, 2, columns)].map((v) => v + 0)).toEqual([...values])
  })

  it.each([
    ['all equal', () => 0.3],
    ['nearly equal', (i: number) => 1 + (i % 3) * 2 ** -23],
    ['as small as f32 has them', (i: number) => i * 2 ** -149],
    ['very large', (i: number) => (i - 9) * 1e36],
  ])('stays finite and near where values are %s', (_name, valueOf) => {
    const row = Float32Array.from({ length: 32 }, (_, i) => valueOf(i))
    const { scales, zeros } = quantizeQ4(row, 1, 32)
    expect([...scales, ...zeros].every(Number.isFinite)).toBe(true)
    const range = Math.max(...row) - Math.min(...row)
    rounded(row, 1, 32).forEach((value, i) => {
      const near = Math.max(range / 20, Math.abs(row[i]!) * 1e-6, 2 ** -143)
      expect(Math.abs(value - row[i]!)).toBeLessThanOrEqual(near)
    })
  })
})
