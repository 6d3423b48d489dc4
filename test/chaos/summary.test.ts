import { expect, test } from 'vitest'
import type { ChaosRun } from '../sim/chaos-run.ts'
import { percentiles, summarise } from './summary.ts'

const GOOD: ChaosRun = {
  seed: 1,
  kind: 'kill',
  stages: 3,
  hasReplica: true,
  outcome: 'identical',
  ending: '',
  noticedMs: 100,
  nextTokenMs: 300,
  leaks: [],
  objections: [],
  fingerprint: 0,
}
const HONEST: ChaosRun = { ...GOOD, outcome: 'honest', ending: 'a device left', nextTokenMs: null }

test('runs that went well, and honest ends where nobody could take over', () => {
  const summary = summarise([GOOD, GOOD, { ...HONEST, hasReplica: false }], 1)
  expect(summary).toMatchObject({ runs: 3, identical: 2, honestEnds: 1, ok: true, failed: [] })
  expect(summary.withReplica).toEqual({ runs: 2, identical: 2 })
  expect(summary.nextTokenMs).toEqual({ p50: 300, p95: 300 })
})

test('how often each disturbance was drawn', () => {
  const { kinds } = summarise([GOOD, { ...GOOD, kind: 'host-restart' }, GOOD], 1)
  expect(kinds).toEqual({ kill: 2, 'host-restart': 1 })
})

test.each([
  [{ ...GOOD, outcome: 'wrong' as const }, 'wrong'],
  [{ ...HONEST, hasReplica: false, outcome: 'hang' as const }, 'hang'],
  [{ ...GOOD, leaks: ['d1 still has 1 caches'] }, 'd1 still has 1 caches'],
  [{ ...GOOD, objections: ['pledgeHolds'] }, 'pledgeHolds'],
  [HONEST, 'broke off: a device left'],
])('%j fails the whole', (run, why) => {
  const summary = summarise([GOOD, run], 1)
  expect(summary.ok).toBe(false)
  expect(summary.failed).toEqual([`seed 1 (kill, 3 stages): ${why}`])
})

test.each([
  [{ ...GOOD, noticedMs: 800 }, 1],
  [{ ...GOOD, kind: 'vanish' as const, noticedMs: 3_100 }, 0],
  [{ ...GOOD, kind: 'vanish' as const, noticedMs: 3_400 }, 1],
  [{ ...GOOD, nextTokenMs: 5_100 }, 1],
  [{ ...GOOD, kind: 'lie-mute' as const, noticedMs: 16_000, nextTokenMs: 20_000 }, 0],
  [{ ...GOOD, kind: 'lie-mute' as const, noticedMs: 16_000, nextTokenMs: 22_000 }, 1],
  [{ ...GOOD, hasReplica: false, nextTokenMs: 5_100 }, 0],
  [{ ...GOOD, noticedMs: null, nextTokenMs: null }, 0],
])('%j is late or not', (run, late) => {
  expect(summarise([run], 1).late).toBe(late)
})

test('percentiles of what was measured', () => {
  expect(percentiles([null, null])).toEqual({ p50: null, p95: null })
  expect(percentiles([5, null, 1, 9, 3])).toEqual({ p50: 5, p95: 9 })
})
