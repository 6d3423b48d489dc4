import { expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { STAGE_STEP_MS } from '../core/limits.ts'
import type { StageOutput, StageStep } from '../runtime/stage-runner.ts'
import { createSentRows } from './sent-rows.ts'
import { createStepRun } from './step-run.ts'

const HIDDEN = 2

/** `outcomes`: one for each step; null = it never ends. */
function setUp(outcomes: (number | Error | null)[], isWanted = () => true) {
  const limits: number[] = []
  const hung: CrowdError[] = []
  const blocked: CrowdError[] = []
  let expire: () => void = () => undefined
  /** Steps get their turn once it is resolved. */
  const kit = { turn: null as Promise<void> | null }
  const record = { cached: 0, sent: createSentRows({ limitBytes: 1e6, usedBytes: 0 }, HIDDEN) }
  const steps = createStepRun({
    queue: {
      block: (error) => blocked.push(error),
      run: async (_, rows, begins) => {
        await kit.turn
        if (!begins()) return Promise.reject(new CrowdError('aborted', 'over'))
        const outcome = outcomes.shift() ?? null
        if (outcome === null) return new Promise<StageOutput>(() => undefined)
        if (outcome instanceof Error) return Promise.reject(outcome)
        const data = new Float32Array(rows * HIDDEN)
        return Promise.resolve({ kind: 'hidden', data, computeMs: outcome })
      },
    },
    record,
    isWanted,
    later(ms, task) {
      limits.push(ms)
      expire = task
      return () => undefined
    },
    onHung: (error) => hung.push(error),
  })
  const run = (position: number, rows = 1): Promise<StageOutput> => {
    const input = { kind: 'tokens', ids: new Int32Array(rows) } as const
    const step: StageStep = { session: 1 as SessionId, position, input, sample: null }
    return steps.run(step, rows)
  }
  return { kit, record, steps, limits, hung, blocked, run, expire: () => expire() }
}

test('RE2 what a step leaves is cached and kept; what a failed one leaves is not counted on', async () => {
  const { record, run } = setUp([1, new CrowdError('out-of-memory', 'no room')])
  await run(0, 3)
  expect([record.cached, record.sent.length]).toEqual([3, 3])
  await expect(run(3)).rejects.toThrow('no room')
  expect(record.cached).toBe(0)
})

test('RE2 a step that did not begin any more leaves what was cached before it', async () => {
  let isWanted = true
  const { record, run } = setUp([1, 1], () => isWanted)
  await run(0, 3)
  isWanted = false
  await expect(run(3)).rejects.toMatchObject({ code: 'aborted' })
  expect([record.cached, record.sent.length]).toEqual([3, 3])
})

test('SE6 a step that takes twenty times as long as any before is told while it still runs', async () => {
  const { limits, hung, blocked, run, steps, expire } = setUp([5, 900, 5, 5, null])
  for (let position = 0; position < 4; position += 1) await run(position)
  void run(4)
  await settled()
  // Until it is known how long steps take here the runner's own limit holds.
  expect(limits).toEqual([...Array.from({ length: 4 }, () => STAGE_STEP_MS), 20 * 900])
  expect(steps.progress()).toEqual({ position: 4, computing: true })
  expire()
  expect(hung).toMatchObject([{ code: 'timeout' }])
  expect(blocked).toEqual(hung)
})

test('SE6 the time in which a step waits for its turn is not its own', async () => {
  const { kit, limits, run } = setUp([5])
  let begin: () => void = () => undefined
  kit.turn = new Promise((resolve) => (begin = resolve))
  const step = run(0)
  await settled()
  expect(limits).toEqual([])
  begin()
  await step
  expect(limits).toEqual([STAGE_STEP_MS])
})

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('a device may stand still for a moment, and no step gets more than the runner’s own limit', async () => {
  const quick = setUp([1, 1, 1, 1, 1])
  for (let position = 0; position < 5; position += 1) await quick.run(position)
  expect(quick.limits.at(-1)).toBe(8_000)
  const slow = setUp([900, 900, 900, 900, 900])
  for (let position = 0; position < 4; position += 1) await slow.run(position)
  await slow.run(4, 32)
  expect(slow.limits.at(-1)).toBe(STAGE_STEP_MS)
})
