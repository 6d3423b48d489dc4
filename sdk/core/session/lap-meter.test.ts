import { expect, test } from 'vitest'
import { createLapMeter } from './lap-meter.ts'

test('a lap is the time between two choices; what is not computed is spread over the hops', () => {
  const meter = createLapMeter(3)
  meter.lap(1_000, 500) // the prefill, not a lap
  meter.lap(1_010, 4)
  meter.lap(1_030, 8)
  expect(meter.timings()).toEqual({ tokens: 3, lapMs: 15, computeMs: 6, hopMs: 3, hops: 3 })
})

test('a single stage has no hops', () => {
  const meter = createLapMeter(1)
  meter.lap(0, 0)
  meter.lap(10, 9)
  expect(meter.timings()).toMatchObject({ hopMs: 0, hops: 0, lapMs: 10 })
})

test('before the second token there is no lap to speak of', () => {
  expect(createLapMeter(2).timings()).toEqual({
    tokens: 0,
    lapMs: 0,
    computeMs: 0,
    hopMs: 0,
    hops: 2,
  })
})
