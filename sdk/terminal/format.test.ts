import { expect, test } from 'vitest'
import { formatBytes, formatCount, formatSeconds, plain, table } from './format.ts'

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.00 kB'],
  [12_345, '12.3 kB'],
  [999_600, '1.00 MB'],
  [4_760_000_000, '4.76 GB'],
] as const)('%i bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test('counts and times are short', () => {
  expect([250_432, 134_515_008, 1_235_814_400].map(formatCount)).toEqual([
    '250432',
    '135 M',
    '1.24 B',
  ])
  expect([0.2, 99, 150, 7_200].map(formatSeconds)).toEqual(['1 s', '99 s', '3 min', '2 h 0 min'])
})

test('a table is cut where the terminal ends', () => {
  const rows = [
    ['NAME', 'FROM'],
    ['a-long-name', 'somewhere far away'],
  ]
  expect(table(rows, 80)).toEqual(['NAME         FROM', 'a-long-name  somewhere far away'])
  expect(table(rows, 20)).toEqual(['NAME         FROM', 'a-long-name  somewh…'])
})

test('control characters do not reach the terminal', () => {
  expect(plain('a\u001b[2Jb\n')).toBe('a?[2Jb?')
})
