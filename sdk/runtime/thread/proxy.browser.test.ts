import { describeStageRunnerContract } from '../../../test/contracts/stage-runner.contract.ts'
import { createTinyModel } from '../tiny-model.ts'
import { createWorkerStageRunner } from './proxy.browser.ts'

describeStageRunnerContract('WASM in a Web Worker', {
  makeRunner: () => createWorkerStageRunner({ prefer: 'wasm' }),
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})
