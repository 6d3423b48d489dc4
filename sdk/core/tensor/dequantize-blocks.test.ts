import { describe, expect, it } from 'vitest'
import { dequantizeBlocks } from './dequantize-blocks.ts'
import { dequantizeBnb4 } from './dequantize-bnb4.ts'

describe('dequantizeBlocks', () => {
  it.each([
    { bits: 2, packed: [0b11_10_01_00], zeros: [0b01], want: [-1, 0, 1, 2] },
    { bits: 4, packed: [0x21, 0xf3], zeros: [0x03], want: [-2, -1, 0, 12] },
    { bits: 8, packed: [0, 1, 128, 255], zeros: [3], want: [-3, -2, 125, 252] },
  ])('takes $bits bits with zero points, low bits first', ({ bits, packed, zeros, want }) => {
    const got = dequantizeBlocks({
      packed: Uint8Array.from(packed),
      scales: Float32Array.of(0.5),
      zeros: Uint8Array.from(zeros),
      shape: { rows: 1, columns: 4, bits, blockSize: 4 },
    })
    expect([...got]).toEqual(want.map((value) => value / 2))
  })

  it('gives each block of each row its own scale and zero point', () => {
    const shape = { rows: 2, columns: 4, bits: 8, blockSize: 2 }
    const packed = new Uint8Array(8).fill(10)
    const scales = Float32Array.of(1, 2, 3, 4)
    const zeros = Uint8Array.of(0, 5, 9, 12)
    const want = [10, 10, 10, 10, 3, 3, -8, -8]
    expect([...dequantizeBlocks({ packed, scales, zeros, shape })]).toEqual(want)
    const floats = Float32Array.from(zeros)
    expect([...dequantizeBlocks({ packed, scales, zeros: floats, shape })]).toEqual(want)
    const middle = dequantizeBlocks({ packed: packed.fill(128), scales, zeros: null, shape })
    expect([...middle]).toEqual(new Array(8).fill(0))
  })
})

describe('dequantizeBnb4', () => {
  it('takes the high nibble first and one magnitude for each block', () => {
    const packed = Uint8Array.of(0x0f, 0x7f)
    const options = { count: 4, blockSize: 2 } as const
    const nf4 = dequantizeBnb4(packed, Float32Array.of(2, 3), { ...options, kind: 'nf4' })
    expect([...nf4]).toEqual([-2, 2, 0, 3])
    const fp4 = dequantizeBnb4(packed, Float32Array.of(2, 3), { ...options, kind: 'fp4' })
    expect([...fp4]).toEqual([0, -0.5, 0.75, -0.75])
  })
})
