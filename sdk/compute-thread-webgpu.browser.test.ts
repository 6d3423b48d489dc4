import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { describeStageRunnerContract } from '../test/contracts/stage-runner.contract.ts'
import type { SessionId } from './core/ids.ts'
import type { WeightDtype } from './core/model/manifest.ts'
import { GREEDY, type SampledToken } from './core/sampling/params.ts'
import type { StageRunner } from './runtime/stage-runner.ts'
import { createTinyModel, type TinyModel } from './runtime/tiny-model.ts'
import { createComputeThread } from './compute-thread.browser.ts'

const LIMIT_MS = 180_000
const SESSION = 1 as SessionId
const runners: StageRunner[] = []

async function started(runner: StageRunner, provider: string): Promise<StageRunner> {
  runners.push(runner)
  const report = await runner.start()
  expect(report.provider, report.notes.join()).toBe(provider)
  return runner
}

afterAll(async () => {
  await Promise.all(runners.map((runner) => runner.close()))
})

async function load(runner: StageRunner, { manifest, blockBytes }: TinyModel): Promise<void> {
  for (const block of await runner.setStage(manifest, { start: 0, end: 3 })) {
    await runner.loadBlock(block, await blockBytes(block))
  }
}

/** Greedy from a prompt in two chunks, then back to the second chunk. */
async function greedy(
  runner: StageRunner,
  model: TinyModel,
  [first, second]: readonly [number, number],
): Promise<SampledToken[]> {
  await load(runner, model)
  const length = first + second
  const prompt = Int32Array.from({ length }, (_, i) => (i * 29 + 5) % model.config.vocabSize)
  const chosen: SampledToken[] = []
  let position = 0
  const step = async (ids: Int32Array, sample: boolean): Promise<void> => {
    const output = await runner.run({
      session: SESSION,
      position,
      input: { kind: 'tokens', ids },
      sample: sample ? { params: GREEDY, history: new Int32Array(0), promptLength: 0 } : null,
    })
    position += ids.length
    if (output.kind === 'token') chosen.push(output.sampled)
  }
  await step(prompt.slice(0, first), false)
  await step(prompt.slice(first), true)
  for (let i = 0; i < 2; i++) await step(Int32Array.of(chosen.at(-1)?.token ?? 0), true)
  position = first
  await step(prompt.slice(first), true)
  await runner.release(SESSION)
  expect(chosen).toHaveLength(4)
  expect(chosen.at(-1)?.token).toBe(chosen[0]?.token)
  return chosen
}

// A software GPU compiles its shaders for seconds before it computes.
vi.setConfig({ testTimeout: LIMIT_MS })

/** Each one compiles and tests for itself, so what needs only one shares it: the contract takes it over at the end. */
const gpu = createComputeThread({ prefer: 'webgpu' }).runner

describe('WebGPU in a Web Worker', () => {
  let wasm: StageRunner

  beforeAll(async () => {
    await started(gpu, 'webgpu')
    wasm = await started(createComputeThread({ prefer: 'wasm' }).runner, 'wasm')
  }, LIMIT_MS)

  it.each<[WeightDtype, number, readonly [number, number]]>([
    // Over the first step of the cache's capacity, so its rows are moved to a larger buffer.
    ['f32', 1e-3, [250, 12]],
    ['f16', 1e-3, [9, 3]],
    ['q4', 0.05, [9, 3]],
  ])(
    'gives the same greedy tokens as WASM with %s weights',
    async (dtype, tolerance, chunks) => {
      const model = createTinyModel({ layerCount: 1, contextLength: 300, dtype })
      const onGpu = await greedy(gpu, model, chunks)
      const onWasm = await greedy(wasm, model, chunks)
      expect(onGpu.map(({ token }) => token)).toEqual(onWasm.map(({ token }) => token))
      onGpu.forEach(({ logprob }, i) => {
        expect(Math.abs(logprob - (onWasm[i]?.logprob ?? NaN))).toBeLessThan(tolerance)
      })
    },
    LIMIT_MS,
  )

  it(
    'is passed over where it is only software, unless asked for, and that is said',
    async () => {
      const runner = createComputeThread({ prefer: 'auto' }).runner
      runners.push(runner)
      const report = await runner.start()
      expect(report.provider).toBe('wasm')
      expect(report.notes.join()).toContain('webgpu: ')
    },
    LIMIT_MS,
  )
})

/** The contract's first one, which it closes. */
const given = [gpu]

describeStageRunnerContract('WebGPU in a Web Worker', {
  makeRunner: () => given.pop() ?? createComputeThread({ prefer: 'webgpu' }).runner,
  model: createTinyModel({ layerCount: 3, contextLength: 320 }),
  tolerance: 1e-3,
  startLimitMs: LIMIT_MS,
})
