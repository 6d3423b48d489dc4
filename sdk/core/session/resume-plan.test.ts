import { expect, test } from 'vitest'
import { planResume, type StageRows } from './resume-plan.ts'

const rows = (cached: number, kept = cached): StageRows => ({ cached, kept })

test('a fresh session begins at the first position everywhere', () => {
  expect(planResume([rows(0), rows(0)], 9)).toEqual([
    { from: 0, forward: 0 },
    { from: 0, forward: 0 },
  ])
})

test('the stage before a hole sends what it kept, and only the new one recomputes', () => {
  expect(planResume([rows(10), rows(10), rows(0), rows(10)], 9)).toEqual([
    { from: 9, forward: 9 },
    { from: 9, forward: 0 },
    { from: 0, forward: 9 },
    { from: 9, forward: 9 },
  ])
})

test('a new first stage computes from the tokens, for its own caches alone', () => {
  expect(planResume([rows(0), rows(10)], 9)).toEqual([
    { from: 0, forward: 9 },
    { from: 9, forward: 9 },
  ])
})

test('where nothing is kept the stages before compute again, back to the tokens', () => {
  expect(planResume([rows(10, 0), rows(10, 0), rows(0)], 9).map(({ from }) => from)).toEqual([
    0, 0, 0,
  ])
  expect(planResume([rows(10), rows(10, 0), rows(4)], 9)).toEqual([
    { from: 9, forward: 4 },
    { from: 4, forward: 4 },
    { from: 4, forward: 4 },
  ])
})

test('whatever is left, every stage gets the rows from where it begins, in one run, and holds those before', () => {
  let seed = 1
  const random = (below: number): number => {
    seed = (seed * 48_271) % 0x7fff_ffff
    return seed % below
  }
  for (let run = 0; run < 5_000; run += 1) {
    const last = random(20)
    const stages = Array.from({ length: 1 + random(5) }, () => {
      const cached = random(24)
      return rows(cached, random(2) === 0 ? 0 : cached)
    })
    planResume(stages, last).forEach(({ from, forward }, index, starts) => {
      const stage = stages[index]
      if (stage === undefined) throw new Error('one start for each stage')
      expect(from).toBeLessThanOrEqual(Math.min(stage.cached, last))
      const next = starts[index + 1]
      if (next === undefined) return
      expect(forward).toBe(next.from)
      if (forward < from) expect(stage.kept).toBeGreaterThanOrEqual(from)
    })
  }
})
