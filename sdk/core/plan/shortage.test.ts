import { expect, test } from 'vitest'
import { deviceOf, modelOf } from '../../../test/support/host-fixtures.ts'
import { planSwarm } from './assign.ts'
import { reviewPlan } from './review.ts'

const model = modelOf({ layers: 8, layerBytes: 1e9, embeddingBytes: 1e9, headBytes: 1e9 })

function review(pledges: readonly number[], minStages = 1) {
  const devices = pledges.map((bytes, index) => deviceOf(`d${index}`, { pledgeBytes: bytes }))
  const input = { model, devices, minStages }
  return reviewPlan(input, planSwarm(input))
}

test('what is missing is said in bytes, and as the fewest devices of a usual size', () => {
  expect(review([4.5e9, 3.5e9]).advice).toBe('3.1 GB short: one more device of 4 GB')
  expect(review([]).advice).toBe('10.1 GB short: one more device of 12 GB')
  expect(review([], 3).advice).toBe('10.1 GB short: 3 more devices of 6 GB')
  const two = review([4.5e9, 3.5e9])
  expect(two.lapMs).toBeNull()
  expect(two.shortage).toMatchObject({ devices: 1, deviceBytes: 4e9 })
  expect(two.devices.every(({ bytes }) => bytes > 0 && bytes <= 4.5e9)).toBe(true)
})

test('nothing is missing: no advice, and a lap', () => {
  const made = review([1e12])
  expect(made).toMatchObject({ advice: '', shortage: null, stages: 1 })
  expect(made.lapMs).toBeGreaterThan(0)
})
