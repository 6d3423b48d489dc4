import { expect, test } from 'vitest'
import { createRandomModel } from '../../test/support/models.ts'
import { manifestOf } from '../../test/support/test-manifest.ts'
import { CrowdError } from '../core/errors.ts'
import { checkStep } from '../runtime/step-check.ts'
import type { StageRunner, StageStep } from '../runtime/stage-runner.ts'
import { warmUp } from './warm-up.ts'

const manifest = manifestOf(createRandomModel())
const END = manifest.blocks.length
const HIDDEN = { start: 1, end: 2 }

/** A runner whose steps take what is given, and what it was asked to do. */
function setUp(times: readonly (number | CrowdError)[]) {
  const steps: StageStep[] = []
  const released: number[] = []
  const runner = {
    run(step: StageStep) {
      steps.push(step)
      const taken = times[steps.length - 1] ?? 1
      if (taken instanceof CrowdError) return Promise.reject(taken)
      return Promise.resolve({ kind: 'nothing', computeMs: taken } as const)
    },
    release(session: number) {
      released.push(session)
      return Promise.resolve()
    },
    // Cast: all that a warm-up needs of a runner.
  } as unknown as StageRunner
  return { runner, steps, released }
}

test('the fastest step behind the first says how fast a stage is, and no cache is left', async () => {
  const { runner, steps, released } = setUp([0.5, 9, 3, 4])
  const { signal } = new AbortController()
  expect(await warmUp(runner, { manifest, range: HIDDEN }, signal)).toBe(3)
  expect(new Set(steps.map(({ session }) => session))).toEqual(new Set([0]))
  expect(released).toEqual([0])
})

test('every stage gets rows that it can take, and one with the head chooses a token', async () => {
  const stages: [start: number, end: number, samples: boolean][] = [
    [0, 1, false],
    [0, END, true],
    [1, 2, false],
    [END - 1, END, true],
  ]
  for (const [start, end, samples] of stages) {
    const { runner, steps } = setUp([])
    const range = { start, end }
    await warmUp(runner, { manifest, range }, new AbortController().signal)
    for (const step of steps) {
      expect(checkStep(manifest, range, step)).toBe(1)
      expect(step.sample !== null).toBe(samples)
    }
  }
})

test("a stage that can't compute fails, and what it cached is freed", async () => {
  const { runner, steps, released } = setUp([2, new CrowdError('non-finite', 'NaN came out')])
  const { signal } = new AbortController()
  const failed = warmUp(runner, { manifest, range: HIDDEN }, signal)
  await expect(failed).rejects.toMatchObject({ code: 'non-finite' })
  expect(steps).toHaveLength(2)
  expect(released).toEqual([0])
})

test('it ends as soon as the stage is replaced', async () => {
  const { runner, steps, released } = setUp([])
  const aborted = AbortSignal.abort(new CrowdError('aborted', 'other layers'))
  const stopped = warmUp(runner, { manifest, range: HIDDEN }, aborted)
  await expect(stopped).rejects.toMatchObject({ code: 'aborted' })
  expect(steps).toHaveLength(1)
  expect(released).toEqual([0])
})
