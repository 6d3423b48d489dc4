import { expect, test } from 'vitest'
import { modelOf } from '../../../test/support/host-fixtures.ts'
import { advise, type AdviceInput } from './advice.ts'

const model = modelOf()
const roomy = { bytes: 1e9, provider: 'wasm' } as const

function advice(over: Partial<AdviceInput>): string {
  const missing = over.missing ?? []
  return advise({
    model,
    minStages: 3,
    stages: 2,
    pledges: [roomy, roomy],
    unassigned: missing,
    ...over,
    missing,
  })
}

test('says nothing when nothing is missing', () => {
  expect(advice({})).toBe('')
})

test('counts layers and tabs', () => {
  expect(advice({ missing: [{ start: 5, end: 8 }] })).toBe(
    '2 of 6 layers missing: open one more tab',
  )
  expect(advice({ missing: [{ start: 0, end: 8 }], stages: 0, pledges: [] })).toBe(
    '6 of 6 layers missing: open 3 more tabs',
  )
})

test('small pledges need more tabs, and a pledge below one block is named', () => {
  const small = { bytes: 12_000, provider: 'wasm' } as const
  expect(advice({ missing: [{ start: 3, end: 7 }], minStages: 1, pledges: [small] })).toBe(
    '4 of 6 layers missing: open 4 more tabs',
  )
  const tiny = { bytes: 10, provider: 'wasm' } as const
  expect(advice({ missing: [{ start: 3, end: 7 }], pledges: [tiny] })).toBe(
    '4 of 6 layers missing: open a tab that pledges at least 1 MB',
  )
})

test('layers on the way need patience, not tabs', () => {
  expect(advice({ missing: [{ start: 5, end: 8 }], unassigned: [] })).toBe(
    '2 of 6 layers on the way: a device is loading them',
  )
})

test('the ends are named when all layers are there', () => {
  expect(advice({ missing: [{ start: 7, end: 8 }] })).toBe('head missing: open one more tab')
})
