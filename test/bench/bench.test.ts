import { expect, test } from 'vitest'
import { compare, verdicts } from './bench.ts'

const lap = (kind: 'tabs' | 'process', stages: number, lapMs: number, computeMs: number) => ({
  kind,
  stages,
  lapMs,
  computeMs,
  hopMs: stages === 1 ? 0 : (lapMs - computeMs) / stages,
})

test('every row is compared with the unsplit model in one tab, and with that of its own kind', () => {
  const rows = compare([
    lap('tabs', 1, 50, 46),
    lap('tabs', 2, 62.5, 55.5),
    lap('process', 1, 25, 24),
    lap('process', 2, 25, 24),
  ])
  expect(rows.map(({ ratio }) => ratio)).toEqual([1, 0.8, 2, 2])
  expect(rows.map(({ ratioOfKind }) => ratioOfKind)).toEqual([1, 0.8, 1, 1])
  expect(rows[1]?.ratioOwnCompute).toBeCloseTo(50 / (62.5 - 55.5 + 46))
  expect(verdicts(rows).map(({ met }) => met)).toEqual([true, true])
})

test('a limit that is not met is said', () => {
  const rows = compare([lap('tabs', 1, 10, 9), lap('tabs', 2, 19, 10), lap('tabs', 3, 19, 10)])
  const said = verdicts(rows)
  expect(said.map(({ met }) => met)).toEqual([false, false])
  expect(said[0]?.text).toContain('4.50 ms, at most 4: NOT met')
})

test('without the unsplit model there is nothing to compare with', () => {
  expect(() => compare([lap('tabs', 2, 10, 9)])).toThrow('was not measured')
})
