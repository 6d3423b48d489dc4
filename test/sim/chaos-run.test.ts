import { expect, test } from 'vitest'
import { chaosRun } from './chaos-run.ts'
import { DISTURBANCES } from './disturbances.ts'

test.each(DISTURBANCES.map((kind, index) => [kind, 100 + index] as const))(
  '%s: the text of the unsplit model, or its beginning and a reason',
  async (kind, seed) => {
    const run = await chaosRun(seed, [kind])
    const where = `seed ${run.seed}, ${kind}: ${run.ending}`
    expect(run, where).toMatchObject({ kind, leaks: [], objections: [] })
    expect(run.hasReplica ? ['identical'] : ['identical', 'honest'], where).toContain(run.outcome)
  },
)

test('a seed runs the same way each time, and another one in another', async () => {
  const [first, again, other] = [await chaosRun(7), await chaosRun(7), await chaosRun(8)]
  expect(again).toEqual(first)
  expect(other.fingerprint).not.toBe(first.fingerprint)
})
