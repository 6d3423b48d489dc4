import { expect, test } from 'vitest'
import { chaosRun } from './chaos-run.ts'
import { DISTURBANCES } from './disturbances.ts'

test('one of every disturbance: the text of the unsplit model, or its beginning and a reason', async () => {
  for (const [index, kind] of DISTURBANCES.entries()) {
    const run = await chaosRun(100 + index, [kind])
    const where = `seed ${run.seed}, ${kind}: ${run.ending}`
    expect(run, where).toMatchObject({ kind, leaks: [], objections: [] })
    expect(run.hasReplica ? ['identical'] : ['identical', 'honest'], where).toContain(run.outcome)
  }
})

test('a seed runs the same way each time, and another one in another', async () => {
  const [first, again, other] = [await chaosRun(7), await chaosRun(7), await chaosRun(8)]
  expect(again).toEqual(first)
  expect(other.fingerprint).not.toBe(first.fingerprint)
})
