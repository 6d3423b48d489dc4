import { createTinyModel } from '../../sdk/runtime/tiny-model.ts'
import { describeStageRunnerContract } from '../contracts/stage-runner.contract.ts'
import { createFakeStageRunner } from './fake-stage-runner.ts'

describeStageRunnerContract('the fake runner', {
  makeRunner: createFakeStageRunner,
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 0,
})
