import { describe, expect, it } from 'vitest'
import { describeStageRunnerContract } from '../../test/contracts/stage-runner.contract.ts'
import type { SessionId } from '../core/ids.ts'
import type { WeightDtype } from '../core/model/manifest.ts'
import { GREEDY } from '../core/sampling/params.ts'
import { createNodeStageRunner } from './ort.node.ts'
import { createTinyModel } from './tiny-model.ts'

describeStageRunnerContract('onnxruntime-node', {
  makeRunner: () => createNodeStageRunner({ threads: 1 }),
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})

describe('4-bit and half weights', () => {
  it.each(['q4', 'f16'] as const)('%s gives nearly the numbers of f32', async (dtype) => {
    const [exact, coarse] = [await logprobs('f32'), await logprobs(dtype)]
    expect(coarse).not.toEqual(exact)
    const limit = dtype === 'f16' ? 0.01 : 1
    exact.forEach((value, i) => {
      expect(Math.abs(value - (coarse[i] ?? NaN))).toBeLessThan(limit)
    })
  })
})

/** Log-probabilities of a fixed token after each of a few positions. */
async function logprobs(dtype: WeightDtype): Promise<number[]> {
  const model = createTinyModel({ layerCount: 2, dtype })
  const runner = createNodeStageRunner({ threads: 1 })
  await runner.start()
  for (const block of await runner.setStage(model.manifest, { start: 0, end: 4 })) {
    await runner.loadBlock(block, await model.blockBytes(block))
  }
  const params = { ...GREEDY, logitBias: [[7, 1000]] as const }
  const found: number[] = []
  for (let position = 0; position < 20; position += 5) {
    const ids = Int32Array.from({ length: 5 }, (_, i) => (position + i) * 3)
    const output = await runner.run({
      session: 1 as SessionId,
      position,
      input: { kind: 'tokens', ids },
      sample: { params, history: new Int32Array(0), promptLength: 0 },
    })
    if (output.kind === 'token') found.push(output.sampled.logprob)
  }
  await runner.close()
  expect(found).toHaveLength(4)
  return found
}
