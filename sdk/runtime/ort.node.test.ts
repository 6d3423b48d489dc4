import { describeStageRunnerContract } from '../../test/contracts/stage-runner.contract.ts'
import { createNodeStageRunner } from './ort.node.ts'
import { createTinyModel } from './tiny-model.ts'

describeStageRunnerContract('onnxruntime-node', {
  makeRunner: () => createNodeStageRunner({ threads: 1 }),
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})
