import { expect, test } from 'vitest'
import { counted, formatBytes, formatMs, formatPercent } from './format.ts'

test('bytes are shown in decimal units', () => {
  expect(
    [0, 999, 1_000, 3_400_000, 10_240_000, 250_000_000, 1_500_000_000].map(formatBytes),
  ).toEqual(['0 bytes', '999 bytes', '1 kB', '3.4 MB', '10.2 MB', '250 MB', '1.5 GB'])
})

test('times keep the digits that matter', () => {
  expect([0.42, 7.46, 12.4, 999.4, 999.6, 4_200, 59_960, 125_000].map(formatMs)).toEqual([
    '0.42 ms',
    '7.5 ms',
    '12 ms',
    '999 ms',
    '1.0 s',
    '4.2 s',
    '1 min 0 s',
    '2 min 5 s',
  ])
})

test('counts agree with their noun', () => {
  expect(counted(1, 'layer')).toBe('1 layer')
  expect(counted(1_234, 'token')).toBe('1,234 tokens')
  expect(formatPercent(0.716)).toBe('72%')
})
