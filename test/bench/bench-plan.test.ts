import { expect, test } from 'vitest'
import { benchPlan, PLAN_MAX_MS } from './bench-plan.ts'

test('64 devices and 80 layers are planned within 50 ms of processor time', () => {
  const rows = benchPlan([[64, 80]])
  expect(rows).toHaveLength(3)
  expect(rows.filter(({ cpuMs }) => cpuMs > PLAN_MAX_MS)).toEqual([])
})

test('256 devices are planned while people wait for nothing else', () => {
  const rows = benchPlan([[256, 80]])
  expect(rows.filter(({ cpuMs }) => cpuMs > 10 * PLAN_MAX_MS)).toEqual([])
}, 30_000)
