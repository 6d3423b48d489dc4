import { describe, expect, test } from 'vitest'
import { evenRanges } from './even-ranges.ts'

describe('evenRanges', () => {
  test('covers every block once, in order, for every number of stages', () => {
    for (let layerCount = 1; layerCount <= 12; layerCount += 1) {
      for (let stages = 1; stages <= layerCount; stages += 1) {
        const ranges = evenRanges(layerCount, stages)
        expect(ranges).toHaveLength(stages)
        expect(ranges[0]?.start).toBe(0)
        expect(ranges.at(-1)?.end).toBe(layerCount + 2)
        ranges.slice(1).forEach((range, index) => expect(range.start).toBe(ranges[index]?.end))
      }
    }
  })

  test('refuses more stages than layers, with the numbers', () => {
    expect(() => evenRanges(5, 6)).toThrow('1 to 5 stages, not 6')
    expect(() => evenRanges(5, 0)).toThrow('not 0')
    expect(() => evenRanges(5, 1.5)).toThrow('not 1.5')
  })
})
