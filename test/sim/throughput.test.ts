import { expect, test } from 'vitest'
import { measureThroughput } from './throughput.ts'

test('four answers at once on a chain of three stages: at least 2.5 times the tokens of one', async () => {
  const { one, all, ratio } = await measureThroughput()
  expect(ratio, `${one.toFixed(1)} and ${all.toFixed(1)} tokens/s`).toBeGreaterThanOrEqual(2.5)
  // A stage that is never idle is the limit.
  expect(all).toBeLessThanOrEqual(1_000 / (55.1 / 3))
})
