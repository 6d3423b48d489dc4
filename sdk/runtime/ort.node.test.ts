import { describe, expect, it } from 'vitest'
import { describeStageRunnerContract } from '../../test/contracts/stage-runner.contract.ts'
import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { WeightDtype } from '../core/model/manifest.ts'
import { GREEDY } from '../core/sampling/params.ts'
import { createNodeStageRunner, nodeCandidates, type NodeOrtOptions } from './ort.node.ts'
import { createOrtQueue } from './ort-queue.ts'
import { createOrtStageRunner } from './ort-stage-runner.ts'
import { createTinyModel } from './tiny-model.ts'

describeStageRunnerContract('onnxruntime-node', {
  makeRunner: () => createNodeStageRunner({ threads: 1 }),
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})

describe('choosing a provider', () => {
  it('tries the GPUs by running and says in one line why each was passed over', async () => {
    const { started, runner } = await start({ prefer: 'auto', threads: 1 })
    await runner.close()
    const tried = [...started.notes.map((note) => note.split(':')[0]), started.provider]
    // A machine with a GPU stops at the first that passes.
    expect(['cuda', 'webgpu', 'cpu'].slice(0, tried.length)).toEqual(tried)
    for (const note of started.notes) {
      expect(note).toMatch(/^(cuda|webgpu): .{10,}/)
      expect(note).not.toMatch(/\n|onnxruntime_src/)
    }
  })

  it('tries what was asked for, then the CPU', () => {
    const names = (options: NodeOrtOptions) => nodeCandidates(options).map(({ name }) => name)
    expect(names({})).toEqual(['cpu'])
    expect(names({ prefer: 'cpu' })).toEqual(['cpu'])
    expect(names({ prefer: 'cuda' })).toEqual(['cuda', 'cpu'])
    expect(names({ prefer: 'auto' })).toEqual(['cuda', 'webgpu', 'cpu'])
    expect(names({ prefer: 'auto', requireGpu: true })).toEqual(['cuda', 'webgpu'])
    expect(names({ prefer: 'webgpu', requireGpu: true })).toEqual(['webgpu'])
  })

  it('fails where a GPU is required and none runs, with the reason of each', async () => {
    const runner = createOrtStageRunner({
      candidates: nodeCandidates({ prefer: 'auto', requireGpu: true }).map(({ name }) => ({
        name,
        open: () => Promise.reject(new CrowdError('provider-unavailable', `no ${name} here`)),
      })),
      queue: createOrtQueue(),
      selfTest: () => Promise.resolve(),
    })
    await expect(runner.start()).rejects.toMatchObject({
      code: 'provider-unavailable',
      message: 'cuda: no cuda here; webgpu: no webgpu here',
    })
  })

  async function start(options: NodeOrtOptions) {
    const runner = createNodeStageRunner(options)
    return { runner, started: await runner.start() }
  }
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
