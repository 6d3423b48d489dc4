import { expect, test } from 'vitest'
import { createSafeStorage } from './safe-storage.ts'

test('where the browser blocks storage, values live as long as the page', () => {
  const storage = createSafeStorage(() => {
    throw new Error('blocked')
  })
  expect(storage.get('name')).toBeNull()
  storage.set('name', 'attic')
  expect(storage.get('name')).toBe('attic')
  storage.remove('name')
  expect(storage.get('name')).toBeNull()
})
