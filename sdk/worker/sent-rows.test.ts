import { expect, test } from 'vitest'
import { createSentRows } from './sent-rows.ts'

const HIDDEN = 2
/** Rows of which each holds its own position. */
const rowsOf = (position: number, count: number): Float32Array =>
  Float32Array.from({ length: count * HIDDEN }, (_, i) => position + Math.floor(i / HIDDEN))
const budgetOf = (limitBytes: number) => ({ limitBytes, usedBytes: 0 })

test('what was sent in any runs is sent again in others', () => {
  const sent = createSentRows(budgetOf(1e6), HIDDEN)
  for (const [position, count] of [
    [0, 3],
    [3, 1],
    [4, 1],
    [5, 4],
  ] as const)
    sent.append(position, rowsOf(position, count))
  const runs = [...sent.runs(1, 9, 3)]
  expect(runs.map(({ position, rows }) => [position, rows])).toEqual([
    [1, 3],
    [4, 3],
    [7, 2],
  ])
  for (const { position, rows, data } of runs) expect(data).toEqual(rowsOf(position, rows))
})

test('rows that are computed anew replace the ones from there on, in the middle of a run too', () => {
  const budget = budgetOf(1e6)
  const sent = createSentRows(budget, HIDDEN)
  sent.append(0, rowsOf(0, 4))
  sent.append(2, rowsOf(50, 1))
  expect(sent.length).toBe(3)
  expect([...sent.runs(0, 3, 8)].map(({ data }) => [...data])).toEqual([[0, 0, 1, 1, 50, 50]])
  expect(budget.usedBytes).toBe(3 * HIDDEN * 4)
})

test('more than the budget is given up as a whole, and so is what comes behind it', () => {
  const budget = budgetOf(5 * HIDDEN * 4)
  const [first, second] = [createSentRows(budget, HIDDEN), createSentRows(budget, HIDDEN)]
  first.append(0, rowsOf(0, 3))
  second.append(0, rowsOf(0, 3))
  second.append(3, rowsOf(3, 1))
  expect([first.length, second.length]).toEqual([3, 0])
  expect(budget.usedBytes).toBe(3 * HIDDEN * 4)
  // From the first position on it begins anew.
  second.append(0, rowsOf(0, 2))
  expect(second.length).toBe(2)
})

test('cutting everything frees everything', () => {
  const budget = budgetOf(1e6)
  const sent = createSentRows(budget, HIDDEN)
  sent.append(0, rowsOf(0, 4))
  sent.append(4, rowsOf(4, 1))
  sent.cut(0)
  expect([sent.length, budget.usedBytes]).toEqual([0, 0])
})

test('RE7 rows that are not there are never made up, nor those that go while they are sent', () => {
  const sent = createSentRows(budgetOf(1e6), HIDDEN)
  sent.append(0, rowsOf(0, 9))
  expect(() => sent.runs(1, 10, 3).next()).toThrow('not kept here any more')
  const runs = sent.runs(1, 9, 3)
  expect(runs.next().value).toMatchObject({ position: 1, rows: 3 })
  sent.cut(8)
  expect(() => runs.next()).toThrow('not kept here any more')
})
