import { expect, test } from 'vitest'
import { CHUNK_BYTES } from '../core/limits.ts'
import { parseRelayed } from './relayed.ts'

test('SG13 takes relayed bytes in either form, and nothing else', () => {
  const expected = { pair: 'p', bytes: Uint8Array.of(1, 2) }
  expect(parseRelayed('p', Uint8Array.of(1, 2))).toEqual(expected)
  expect(parseRelayed('p', Uint8Array.of(1, 2).buffer)).toEqual(expected)
  expect(parseRelayed('p', Buffer.from([9, 1, 2]).subarray(1))).toEqual(expected)
  expect(parseRelayed('p', new Uint8Array(CHUNK_BYTES))).not.toBeNull()
  expect(parseRelayed('p', new Uint8Array(CHUNK_BYTES + 1))).toBeNull()
  for (const pair of ['a b', '', 'x'.repeat(81), 5, null]) {
    expect(parseRelayed(pair, new Uint8Array(1))).toBeNull()
  }
  for (const bytes of ['text', [1, 2], null, undefined, 7, {}]) {
    expect(parseRelayed('p', bytes)).toBeNull()
  }
})
