import { afterAll, beforeAll, describe } from 'vitest'
import { describeBlocks } from './stage-blocks.contract.ts'
import { createRunnerKit, type StageRunnerContractOptions } from './stage-runner-kit.ts'
import { describeSteps } from './stage-steps.contract.ts'

/** What every StageRunner does, the fake one included. */
export function describeStageRunnerContract(
  name: string,
  options: StageRunnerContractOptions,
): void {
  describe(`${name} keeps the StageRunner contract`, () => {
    const kit = createRunnerKit(options)
    beforeAll(kit.open, kit.startLimitMs)
    afterAll(kit.close)

    describeSteps(kit)
    describeBlocks(kit)
  })
}
