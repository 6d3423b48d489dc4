import { expect, test } from 'vitest'
import { seededRandom } from '../../../test/support/host-fixtures.ts'
import { updateSpeed, type Speed } from './speed.ts'

test('the first measurement counts at once, noise of 20 % never, a clear change after a few', () => {
  const random = seededRandom(1)
  let speed: Speed | null = null
  const measure = (ms: number): Speed => {
    speed = updateSpeed(speed, ms)
    return speed
  }
  const settled = measure(8).settledMs
  expect(settled).toBe(8)
  for (let index = 0; index < 1_000; index++)
    expect(measure(10 * (random() < 0.5 ? 0.8 : 1.2)).settledMs).toBe(settled)
  // Twice as slow from now on.
  const later = Array.from({ length: 10 }, () => measure(20))
  expect(later.at(-1)?.settledMs).toBeGreaterThan(12)
  expect(later.at(-1)?.ms).toBeGreaterThan(18)
})
