import { describe, expect, test } from 'vitest'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { problemsOf, type SmokeOptions, type SmokeResult, type SmokeDevice } from './smoke.ts'

const manifest: Manifest = modelOf({ layers: 4 })
const options: SmokeOptions = { tabs: 2, workers: 0, provider: 'wasm', model: 'm', question: '?' }

const tab = (blocks: readonly [number, number], bytes: number): SmokeDevice => ({
  provider: 'wasm',
  path: 'direct',
  blocks,
  pieceBytes: bytes,
  saidBytes: bytes,
})
// Blocks of the fixture: embedding and head 1,000 bytes, layers 10,000.
const GOOD: Omit<SmokeResult, 'ok' | 'problems'> = {
  identical: true,
  text: 'A ring.',
  tokens: 4,
  tabs: [tab([0, 3], 21_000), tab([3, 6], 21_000)],
  workers: [],
  modelBytes: 42_000,
  hostActivationBytes: 0,
  hopMs: 2,
  firstTokenMs: 20,
  tokensPerSecond: 50,
}
const check = (change: Partial<typeof GOOD>) =>
  problemsOf({ ...GOOD, ...change }, { options, manifest, expected: 'A ring.' })
const [first, second] = GOOD.tabs as [SmokeDevice, SmokeDevice]

test('a good run has no problems', () => {
  expect(check({})).toEqual([])
})

test.each<[string, Partial<typeof GOOD>, RegExp]>([
  ['no text', { text: '' }, /no answer/],
  ['other tokens', { identical: false }, /the unsplit model says/],
  ['relayed bytes', { hostActivationBytes: 1 }, /passed through the host/],
  ['no time to the first token', { firstTokenMs: 0 }, /first token has no time/],
  ['no hop time', { hopMs: Number.NaN }, /hops have no time/],
  ['a tab too few', { tabs: [tab([0, 6], 42_000)] }, /1 of 2 tabs/],
  ['a hole', { tabs: [first, tab([4, 6], 11_000)] }, /exactly once/],
  ['an overlap', { tabs: [first, tab([2, 6], 31_000)] }, /exactly once/],
  ['a missing end', { tabs: [first, tab([3, 5], 20_000)] }, /exactly once/],
  ['a relayed link', { tabs: [first, { ...second, path: 'relay' }] }, /linked by relay/],
  ['another provider', { tabs: [first, { ...second, provider: 'webgpu' }] }, /webgpu, not wasm/],
  ['more than its share', { tabs: [first, tab([3, 6], 21_500)] }, /its share is 21000/],
  ['no bytes at all', { tabs: [first, tab([3, 6], 0)] }, /fetched 0 bytes/],
  [
    'bytes that the browser did not see',
    { tabs: [first, { ...second, saidBytes: 7 }] },
    /the browser counted/,
  ],
])('%s is a problem', (_name, change, problem) => {
  expect(check(change).join('\n')).toMatch(problem)
})

describe('with workers', () => {
  const worker: SmokeDevice = { ...tab([3, 6], 21_000), provider: 'cpu' }
  const checkMixed = (change: Partial<typeof GOOD>) =>
    problemsOf(
      { ...GOOD, tabs: [first], workers: [worker], ...change },
      { options: { ...options, tabs: 1, workers: 1 }, manifest, expected: 'A ring.' },
    ).join('\n')

  test('a good run has no problems, whoever comes first', () => {
    expect(checkMixed({})).toBe('')
    const swapped = {
      tabs: [{ ...first, blocks: [3, 6] as const }],
      workers: [{ ...worker, blocks: [0, 3] as const }],
    }
    expect(checkMixed(swapped)).toBe('')
  })

  test.each<[string, Partial<typeof GOOD>, RegExp]>([
    ['a worker too few', { workers: [] }, /0 of 1 workers/],
    ['a relayed worker', { workers: [{ ...worker, path: 'relay' }] }, /the worker .* by relay/],
    [
      'a worker on another provider',
      { workers: [{ ...worker, provider: 'cuda' }] },
      /cuda, not cpu/,
    ],
    [
      'a folder that holds other bytes than were told',
      { workers: [{ ...worker, saidBytes: 7 }] },
      /its folder holds/,
    ],
  ])('%s is a problem', (_name, change, problem) => {
    expect(checkMixed(change)).toMatch(problem)
  })
})
