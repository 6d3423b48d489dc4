import { describe, expect, it } from 'vitest'
import {
  bfloatsToFloats,
  floatsToBfloats,
  floatsToHalves,
  floatToHalf,
  halfToFloat,
  halvesToFloats,
} from './float16.ts'

/** The definition of binary16, in plain arithmetic. */
function valueOf(half: number): number {
  const sign = half >= 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 0x1f
  const mantissa = half & 0x3ff
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : NaN
  if (exponent === 0) return sign * mantissa * 2 ** -24
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15)
}

const ALL = Uint16Array.from({ length: 65_536 }, (_, i) => i)

describe('float16', () => {
  it('widens every half to its exact value', () => {
    const floats = halvesToFloats(ALL)
    for (const half of ALL) {
      if (!Object.is(floats[half], valueOf(half))) expect.fail(`half ${half}`)
      if (!Object.is(halfToFloat(half), valueOf(half))) expect.fail(`single half ${half}`)
    }
  })

  it('narrows every half back to its own bits', () => {
    const back = floatsToHalves(halvesToFloats(ALL))
    for (const half of ALL) {
      const isNan = (half & 0x7fff) > 0x7c00
      if (isNan ? (back[half]! & 0x7fff) <= 0x7c00 : back[half] !== half) expect.fail(`${half}`)
    }
  })

  it('rounds to nearest, ties to even, between every pair of neighbours', () => {
    for (let half = 0; half < 0x7bff; half++) {
      const low = valueOf(half)
      const high = valueOf(half + 1)
      const middle = (low + high) / 2
      const even = half % 2 === 0 ? half : half + 1
      const above = Math.fround(middle * (1 + 2 ** -20))
      const below = Math.fround(middle * (1 - 2 ** -20))
      const got = [
        floatToHalf(middle),
        floatToHalf(above),
        floatToHalf(below),
        floatToHalf(-middle),
      ]
      const want = [even, half + 1, half, even | 0x8000]
      if (got.some((bits, i) => bits !== want[i])) expect.fail(`between ${half} and the next`)
    }
  })

  it('overflows to infinity only from halfway past the largest half', () => {
    expect(floatToHalf(65_519.996)).toBe(0x7bff)
    expect(floatToHalf(65_520)).toBe(0x7c00)
    expect(floatToHalf(-1e30)).toBe(0xfc00)
    expect(floatToHalf(2 ** -25)).toBe(0)
    expect(floatToHalf(2 ** -25 * 1.0001)).toBe(1)
  })
})

describe('bfloat16', () => {
  it('is the upper half of a float, both ways', () => {
    const back = floatsToBfloats(bfloatsToFloats(ALL))
    for (const bits of ALL) {
      const isNan = (bits & 0x7fff) > 0x7f80
      if (isNan ? (back[bits]! & 0x7fff) <= 0x7f80 : back[bits] !== bits) expect.fail(`${bits}`)
    }
  })

  it('rounds ties to even', () => {
    const values = new Float32Array([1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -20])
    expect([...floatsToBfloats(values)]).toEqual([0x3f80, 0x3f82, 0x3f81])
  })
})
