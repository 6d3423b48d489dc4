import { expect, test } from 'vitest'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { modelOf } from '../support/host-fixtures.ts'
import { problemsOf, type SmokeOptions, type SmokeResult, type SmokeTab } from './smoke.ts'

const manifest: Manifest = modelOf({ layers: 4 })
const options: SmokeOptions = { tabs: 2, provider: 'wasm', model: 'm', question: '?' }

const tab = (blocks: readonly [number, number], bytes: number): SmokeTab => ({
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
  modelBytes: 42_000,
  hostActivationBytes: 0,
  hopMs: 2,
  firstTokenMs: 20,
}
const check = (change: Partial<typeof GOOD>) =>
  problemsOf({ ...GOOD, ...change }, { options, manifest, expected: 'A ring.' })
const [first, second] = GOOD.tabs as [SmokeTab, SmokeTab]

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
