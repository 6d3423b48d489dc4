import { expect, test } from 'vitest'
import { chaosRun } from './chaos-run.ts'
import { DISTURBANCES } from './disturbances.ts'

test('one of every disturbance: never a wrong token, never a hang, nothing left over', async () => {
  for (const [index, kind] of DISTURBANCES.entries()) {
    const run = await chaosRun(100 + index, [kind])
    expect(run, `seed ${run.seed}, ${kind}`).toMatchObject({ kind, leaks: [], objections: [] })
    expect(['identical', 'honest'], `seed ${run.seed}, ${kind}: ${run.ending}`).toContain(
      run.outcome,
    )
  }
})

test('a seed runs the same way each time, and another one in another', async () => {
  const [first, again, other] = [await chaosRun(7), await chaosRun(7), await chaosRun(8)]
  expect(again).toEqual(first)
  expect(other.fingerprint).not.toBe(first.fingerprint)
})
