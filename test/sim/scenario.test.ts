import { expect, test } from 'vitest'
import { playScenario } from './scenario.ts'

const SWARM = { people: 3, devices: 8, stages: 3 }

test('a quiet swarm answers everything', async () => {
  const result = await playScenario({ ...SWARM, seed: 1, answers: 8, churnMs: null })
  expect(result).toMatchObject({ wrong: 0, hang: 0, leaks: [], objections: [] })
  // Somebody may lose patience.
  expect(Object.keys(result.endings).filter((code) => code !== 'cancelled')).toEqual([])
})

test('devices come, go and misbehave all the time: no wrong token, no hang, nothing left over', async () => {
  for (const seed of [1, 2]) {
    const result = await playScenario({ ...SWARM, seed, answers: 12, churnMs: 1_500 })
    expect(result, `seed ${seed}`).toMatchObject({ wrong: 0, hang: 0, leaks: [], objections: [] })
    expect(result.identical, `seed ${seed}`).toBeGreaterThan(0)
  }
})
