import { expect, test } from 'vitest'
import { cleanPledgeMb, defaultPledgeMb, nearestStop, PLEDGE_STOPS_MB } from './pledge.ts'

test('the default is an eighth of the memory, never too little nor too much', () => {
  expect([0.25, 2, 8, 64, undefined].map(defaultPledgeMb)).toEqual([64, 256, 1_024, 1_024, 256])
})

test('the slider has stops of 2 MB where small models live', () => {
  expect(PLEDGE_STOPS_MB.slice(0, 4)).toEqual([2, 4, 6, 8])
  expect(PLEDGE_STOPS_MB[nearestStop(2.9)]).toBe(2)
  expect(PLEDGE_STOPS_MB[nearestStop(1_000_000)]).toBe(16_384)
  expect(PLEDGE_STOPS_MB.map((stop, index) => nearestStop(stop) === index)).not.toContain(false)
})

test('nonsense becomes the value from before, and limits hold', () => {
  expect(cleanPledgeMb(Number.NaN, 64)).toBe(64)
  expect(cleanPledgeMb(undefined, 64)).toBe(64)
  expect(cleanPledgeMb(0, 64)).toBe(1)
  expect(cleanPledgeMb(1e9, 64)).toBe(65_536)
  expect(cleanPledgeMb(2.5, 64)).toBe(2.5)
})
