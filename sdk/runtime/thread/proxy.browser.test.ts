import { afterEach, expect, it, vi } from 'vitest'
import { describeStageRunnerContract } from '../../../test/contracts/stage-runner.contract.ts'
import type { SessionId } from '../../core/ids.ts'
import type { StageRunner, StageStep } from '../stage-runner.ts'
import { createTinyModel } from '../tiny-model.ts'
import { createWorkerStageRunner } from './proxy.browser.ts'

describeStageRunnerContract('WASM in a Web Worker', {
  makeRunner: () => createWorkerStageRunner({ prefer: 'wasm' }),
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})

afterEach(() => {
  vi.unstubAllGlobals()
})

it('computes with several WASM threads where the page is isolated', async () => {
  const runner = createWorkerStageRunner({ prefer: 'wasm', threads: 2 })
  const report = await runner.start()
  await runner.close()
  expect(report).toMatchObject({ provider: 'wasm', threads: crossOriginIsolated ? 2 : 1 })
  expect(report.notes).toHaveLength(crossOriginIsolated ? 0 : 1)
  expect(crossOriginIsolated).toBe(true)
})

const model = createTinyModel({ layerCount: 1 })
/** Anew each time: the runner gives the rows away to its thread. */
const step = (): StageStep => ({
  // A session of a runner that nobody else has.
  session: 1 as SessionId,
  position: 0,
  input: { kind: 'hidden', data: new Float32Array(model.config.hiddenSize).fill(0.5) },
  sample: null,
})

async function load(runner: StageRunner): Promise<number[]> {
  const wanted = await runner.setStage(model.manifest, { start: 1, end: 2 })
  for (const block of wanted) await runner.loadBlock(block, await model.blockBytes(block))
  return wanted
}

it('outlives its Web Worker: what waited fails, and a new start computes in a fresh one', async () => {
  const made: Worker[] = []
  vi.stubGlobal(
    'Worker',
    class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        made.push(this)
      }
    },
  )
  const runner = createWorkerStageRunner({ prefer: 'wasm' })
  await runner.start()
  await load(runner)
  const before = await runner.run(step())
  const waiting = runner.run(step())
  made[0]?.terminate()
  made[0]?.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' }))
  await expect(waiting).rejects.toMatchObject({
    code: 'stage-failed',
    message: expect.stringContaining('out of memory') as unknown,
  })
  await runner.start()
  expect(made).toHaveLength(2)
  expect(await load(runner)).toEqual([1])
  expect(await runner.run(step())).toMatchObject({
    ...before,
    computeMs: expect.any(Number) as unknown,
  })
  await runner.close()
})
