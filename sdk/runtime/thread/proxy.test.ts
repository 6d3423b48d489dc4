import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { describeStageRunnerContract } from '../../../test/contracts/stage-runner.contract.ts'
import { createFakeStageRunner } from '../../../test/support/fake-stage-runner.ts'
import { CrowdError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import { STAGE_STEP_MS } from '../../core/limits.ts'
import type { StageRunner, StageStep } from '../stage-runner.ts'
import { createTinyModel } from '../tiny-model.ts'
import { transferable, type ThreadReply, type ThreadRequest } from './messages.ts'
import { createThreadStageRunner, type Thread } from './proxy.ts'
import { serveStageRunner } from './serve.ts'

const model = createTinyModel({ layerCount: 3 })
const SESSION = 1 as SessionId

type TestOptions = { readonly prefer: string }

type TestThread = Thread<TestOptions> & {
  isKilled: boolean
  crash(reason: string): void
  readonly transferred: number[]
}

/** A thread in this thread: messages are cloned and transferred as a real one does. */
function createTestThread(makeRunner: () => StageRunner): TestThread {
  let toPage: (reply: ThreadReply) => void = () => undefined
  let toThread: (request: ThreadRequest<TestOptions>) => void = () => undefined
  let onCrash: (reason: string) => void = () => undefined
  const transferred: number[] = []
  const thread: TestThread = {
    isKilled: false,
    transferred,
    post(message, transfer) {
      transferred.push(...transfer.map(({ byteLength }) => byteLength))
      const copy = structuredClone(message, { transfer })
      queueMicrotask(() => {
        if (!thread.isKilled) toThread(copy)
      })
    },
    listen(listener) {
      toPage = listener
    },
    onCrash(listener) {
      onCrash = listener
    },
    crash(reason) {
      onCrash(reason)
    },
    kill() {
      thread.isKilled = true
    },
  }
  serveStageRunner(
    {
      post(message, transfer) {
        const copy = structuredClone(message, { transfer })
        queueMicrotask(() => {
          if (!thread.isKilled) toPage(copy)
        })
      },
      listen(listener) {
        toThread = listener
      },
    },
    makeRunner,
  )
  return thread
}

function setUp(makeRunner: () => StageRunner = createFakeStageRunner) {
  const threads: TestThread[] = []
  const killed: CrowdError[] = []
  const runner = createThreadStageRunner(
    {
      spawn() {
        const thread = createTestThread(makeRunner)
        threads.push(thread)
        return thread
      },
      onKilled: (error) => killed.push(error),
    },
    { prefer: 'auto' },
  )
  return { runner, threads, killed }
}

/** A runner whose steps never end. */
function hangingRunner(): StageRunner {
  return { ...createFakeStageRunner(), run: () => new Promise(() => undefined) }
}

const step = (position: number): StageStep => ({
  session: SESSION,
  position,
  input: { kind: 'tokens', ids: Int32Array.of(1) },
  sample: null,
})

async function load(runner: StageRunner, range = { start: 0, end: 2 }): Promise<number[]> {
  const wanted = await runner.setStage(model.manifest, range)
  for (const block of wanted) await runner.loadBlock(block, await model.blockBytes(block))
  return wanted
}

describe('the runner in front of a thread', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('gives activations and weights away instead of copying them', async () => {
    const { runner, threads } = setUp()
    await runner.start()
    await load(runner, { start: 1, end: 2 })
    const data = new Float32Array(2 * model.manifest.hiddenSize).fill(1)
    const output = await runner.run({ ...step(0), input: { kind: 'hidden', data } })
    expect(output.kind).toBe('hidden')
    expect(data.byteLength).toBe(0)
    expect(threads[0]?.transferred).toContain(2 * model.manifest.hiddenSize * 4)
    await runner.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('leaves the rest of a shared buffer alone', () => {
    const frame = new ArrayBuffer(64)
    const payload = new Float32Array(frame, 32, 4)
    const { view, buffer } = transferable(payload)
    expect(buffer).not.toBe(frame)
    expect(view.byteLength).toBe(16)
    const whole = new Float32Array(4)
    expect(transferable(whole).buffer).toBe(whole.buffer)
  })

  it('brings errors across as code and message', async () => {
    const { runner } = setUp()
    await runner.start()
    await load(runner)
    const error = await runner.run(step(5)).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(CrowdError)
    expect(error).toMatchObject({ code: 'stage-failed', message: 'only 0 rows are cached' })
    await expect(runner.run(step(0))).resolves.toMatchObject({ kind: 'hidden' })
    await runner.close()
  })

  it('refuses calls before the start', async () => {
    const { runner } = setUp()
    await expect(runner.run(step(0))).rejects.toMatchObject({ code: 'stage-failed' })
    await runner.release(SESSION)
    await runner.close()
  })

  it('kills a thread that hangs; a new start makes a fresh one that wants its blocks', async () => {
    let makeRunner = hangingRunner
    const { runner, threads, killed } = setUp(() => makeRunner())
    await runner.start()
    await load(runner)
    const calls = Promise.allSettled([runner.run(step(0)), runner.run(step(1))])
    await vi.advanceTimersByTimeAsync(STAGE_STEP_MS + 10_000)
    for (const call of await calls) expect(call).toMatchObject({ reason: { code: 'timeout' } })
    expect(threads[0]?.isKilled).toBe(true)
    expect(killed.map(({ code }) => code)).toEqual(['timeout'])
    await expect(runner.run(step(0))).rejects.toMatchObject({ code: 'stage-failed' })

    makeRunner = createFakeStageRunner
    await runner.start()
    expect(await load(runner)).toEqual([0, 1])
    await expect(runner.run(step(0))).resolves.toMatchObject({ kind: 'hidden' })
    await runner.close()
    expect(threads.every(({ isKilled }) => isKilled)).toBe(true)
  })

  it('does not kill a thread that is only busy', async () => {
    const slow = (): StageRunner => {
      const fake = createFakeStageRunner()
      let tail: Promise<unknown> = Promise.resolve()
      const run: StageRunner['run'] = (request) => {
        const result = tail.then(async () => {
          await new Promise((resolve) => setTimeout(resolve, STAGE_STEP_MS / 2))
          return fake.run(request)
        })
        tail = result
        return result
      }
      return { ...fake, run }
    }
    const { runner, killed } = setUp(slow)
    await runner.start()
    await load(runner)
    const calls = Promise.all([0, 1, 2, 3, 4].map((position) => runner.run(step(position))))
    await vi.advanceTimersByTimeAsync(3 * STAGE_STEP_MS)
    expect(await calls).toHaveLength(5)
    expect(killed).toEqual([])
    await runner.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('kills a thread whose runtime hangs, as it says itself', async () => {
    const { runner, threads } = setUp(() => ({
      ...createFakeStageRunner(),
      run: () => Promise.reject(new CrowdError('timeout', 'a step took too long')),
    }))
    await runner.start()
    await load(runner)
    await expect(runner.run(step(0))).rejects.toMatchObject({ code: 'timeout' })
    expect(threads[0]?.isKilled).toBe(true)
  })

  it('fails what is waiting when the thread dies', async () => {
    const { runner, threads, killed } = setUp(hangingRunner)
    await runner.start()
    await load(runner)
    const waiting = runner.run(step(0))
    threads[0]?.crash('out of memory')
    await expect(waiting).rejects.toMatchObject({
      code: 'stage-failed',
      message: expect.stringContaining('out of memory') as unknown,
    })
    expect(killed).toHaveLength(1)
    await runner.close()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('closes a thread that does not answer, and stays closed', async () => {
    const { runner, threads } = setUp(() => ({
      ...createFakeStageRunner(),
      close: () => new Promise(() => undefined),
    }))
    await runner.start()
    const closing = runner.close()
    await vi.advanceTimersByTimeAsync(10_000)
    await closing
    await runner.close()
    expect(threads[0]?.isKilled).toBe(true)
    await expect(runner.start()).rejects.toMatchObject({ code: 'stage-failed' })
    expect(vi.getTimerCount()).toBe(0)
  })
})

describeStageRunnerContract('a fake runner behind a thread', {
  makeRunner: () => setUp().runner,
  model,
  tolerance: 0,
})
