import { expect, test } from 'vitest'
import { growthOf } from './growth.ts'

test('the last third against the first', () => {
  const { first, last, growth } = growthOf([10, 10, 50, 50, 11, 13])
  expect([first, last]).toEqual([10, 12])
  expect(growth).toBeCloseTo(0.2)
})

test('a series that stays does not grow, and one that shrinks grows by less than nothing', () => {
  expect(growthOf([7]).growth).toBe(0)
  expect(growthOf([8, 6, 4]).growth).toBe(-0.5)
  expect(growthOf([]).growth).toBe(0)
})
