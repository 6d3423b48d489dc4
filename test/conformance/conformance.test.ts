import { expect, test } from 'vitest'
import { fieldsOf } from '../../signaling/api/fields.ts'
import { conformance } from './conformance.ts'

const LIMIT_MS = 180_000

test('the official client finds every field as the table says', { timeout: LIMIT_MS }, async () => {
  const { rows, passed, failed, refused } = await conformance(() => undefined)
  expect(rows.filter(({ result }) => result === 'failed')).toEqual([])
  expect(passed + failed + refused).toBe(rows.length)
  for (const endpoint of ['chat', 'completions'] as const)
    for (const { name, treatment } of fieldsOf(endpoint)) {
      const result = treatment === 'refused' ? 'refused' : 'passed'
      expect(rows).toContainEqual({ endpoint, field: name, treatment, result, detail: '' })
    }
})
