import { expect, test } from 'vitest'
import { choiceSeed } from './choice-seed.ts'

test('the first choice keeps the seed, the others have their own, always the same', () => {
  const seeds = Array.from({ length: 8 }, (_, choice) => choiceSeed(7, choice))
  expect(seeds[0]).toBe(7)
  expect(new Set(seeds).size).toBe(8)
  expect(seeds.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32)).toBe(true)
  expect(Array.from({ length: 8 }, (_, choice) => choiceSeed(7, choice))).toEqual(seeds)
  expect(choiceSeed(8, 1)).not.toBe(seeds[1])
})
