import { expect, it } from 'vitest'
import { describeStageRunnerContract } from '../../../test/contracts/stage-runner.contract.ts'
import { createTinyModel } from '../tiny-model.ts'
import { createWorkerStageRunner } from './proxy.browser.ts'

describeStageRunnerContract('WASM in a Web Worker', {
  makeRunner: () => createWorkerStageRunner({ prefer: 'wasm' }),
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})

it('computes with several WASM threads where the page is isolated', async () => {
  const runner = createWorkerStageRunner({ prefer: 'wasm', threads: 2 })
  const report = await runner.start()
  await runner.close()
  expect(report).toMatchObject({ provider: 'wasm', threads: crossOriginIsolated ? 2 : 1 })
  expect(report.notes).toHaveLength(crossOriginIsolated ? 0 : 1)
  expect(crossOriginIsolated).toBe(true)
})
