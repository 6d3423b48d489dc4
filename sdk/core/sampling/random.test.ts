import { describe, expect, it } from 'vitest'
import { philox2x32, randomAt } from './random.ts'

describe('philox2x32', () => {
  it('gives the published answers (Random123 known-answer vectors)', () => {
    expect(philox2x32([0, 0], 0)).toEqual([0xff1dae59, 0x6cd10df2])
    expect(philox2x32([0xffffffff, 0xffffffff], 0xffffffff)).toEqual([0x2c3f628b, 0xab4fd7ad])
    expect(philox2x32([0x243f6a88, 0x85a308d3], 0x13198a2e)).toEqual([0xdd7ce038, 0xf62a4c12])
  })
})

/** Chi-square over equal bins; 99.99 % of fair draws with 63 degrees of freedom stay below 115. */
function chiSquare(draw: (index: number) => number, count: number, bins = 64): number {
  const counts = new Float64Array(bins)
  for (let index = 0; index < count; index++) {
    const bin = Math.floor(draw(index) * bins)
    counts[bin] = (counts[bin] ?? 0) + 1
  }
  const expected = count / bins
  return counts.reduce((sum, seen) => sum + (seen - expected) ** 2 / expected, 0)
}

describe('randomAt', () => {
  it('is uniform along positions for several seeds', () => {
    for (const seed of [0, 1, 42, 0xffffffff]) {
      expect(chiSquare((position) => randomAt(seed, position), 40_000)).toBeLessThan(115)
    }
  })

  it('is uniform along seeds at one position', () => {
    for (const position of [0, 1, 255]) {
      expect(chiSquare((seed) => randomAt(seed, position), 40_000)).toBeLessThan(115)
    }
  })

  it('does not correlate neighbours', () => {
    const count = 40_000
    for (const [dSeed, dPosition] of [
      [0, 1],
      [1, 0],
      [1, 1],
    ] as const) {
      let sum = 0
      for (let index = 0; index < count; index++) {
        sum += (randomAt(5, index) - 0.5) * (randomAt(5 + dSeed, index + dPosition) - 0.5)
      }
      // Variance of one product is 1/144; five standard deviations.
      expect(Math.abs(sum / count)).toBeLessThan(5 / (12 * Math.sqrt(count)))
    }
  })

  it('stays in [0, 1) and is a pure function', () => {
    for (let index = 0; index < 10_000; index++) {
      const value = randomAt(index * 7919, index)
      expect(value).toBeGreaterThanOrEqual(0)
      expect(value).toBeLessThan(1)
    }
    expect(randomAt(3, 9)).toBe(randomAt(3, 9))
  })
})
