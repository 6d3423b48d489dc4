import { expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { StageOutput, StageStep } from '../runtime/stage-runner.ts'
import { createStepQueue } from './step-queue.ts'

function setUp() {
  const begun: number[] = []
  const over = new Set<number>()
  const ends: ((failure?: Error) => void)[] = []
  const queue = createStepQueue({
    run: ({ session }) => {
      begun.push(session)
      return new Promise<StageOutput>((resolve, reject) => {
        ends.push((failure) =>
          failure ? reject(failure) : resolve({ kind: 'nothing', computeMs: 1 }),
        )
      })
    },
  })
  const ask = (session: number, rows: number): Promise<StageOutput> => {
    const input = { kind: 'tokens', ids: new Int32Array(rows) } as const
    const step: StageStep = { session: session as SessionId, position: 0, input, sample: null }
    return queue.run(step, rows, () => !over.has(session))
  }
  const end = async (failure?: Error): Promise<void> => {
    ends.shift()?.(failure)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { queue, begun, over, ask, end }
}

test('one step at a time; tokens before prompts, each in the order they came', async () => {
  const { begun, ask, end } = setUp()
  void ask(1, 32)
  void ask(2, 32)
  void ask(3, 1)
  void ask(4, 1)
  expect(begun).toEqual([1])
  for (let step = 0; step < 3; step += 1) await end()
  expect(begun).toEqual([1, 3, 4, 2])
})

test('a prompt gets its turn however many tokens others want', async () => {
  const { begun, ask, end } = setUp()
  void ask(1, 1)
  void ask(2, 32)
  for (let token = 0; token < 12; token += 1) {
    void ask(1, 1)
    await end()
  }
  expect(begun.indexOf(2)).toBe(8)
})

test('a step that fails is told to whoever asked, and the next one begins', async () => {
  const { begun, ask, end } = setUp()
  const first = ask(1, 1)
  void ask(2, 1)
  const failed = expect(first).rejects.toThrow('the GPU is gone')
  await end(new Error('the GPU is gone'))
  await failed
  expect(begun).toEqual([1, 2])
})

test('SE7 a step whose session ended while it waited is not run: it would bring back the caches', async () => {
  const { begun, over, ask, end } = setUp()
  void ask(1, 1)
  const second = ask(2, 1)
  void ask(3, 1)
  over.add(2)
  const failed = expect(second).rejects.toThrow('over')
  await end()
  await failed
  expect(begun).toEqual([1, 3])
})

test('SE6 behind a step that hangs nobody waits, until it is over', async () => {
  const { queue, begun, ask, end } = setUp()
  const hangs = new CrowdError('timeout', 'a step hangs')
  void ask(1, 1)
  const waiting = [ask(2, 1), ask(3, 32)]
  queue.block(hangs)
  for (const step of [...waiting, ask(4, 1)]) await expect(step).rejects.toBe(hangs)
  await end()
  queue.block(hangs)
  void ask(5, 1)
  expect(begun).toEqual([1, 5])
})
