import { afterAll, expect, it } from 'vitest'
import type { SessionId } from '../../core/ids.ts'
import { GREEDY } from '../../core/sampling/params.ts'
import type { StageRunner } from '../stage-runner.ts'
import { createTinyModel } from '../tiny-model.ts'
import { createWorkerStageRunner } from './proxy.browser.ts'

const LIMIT_MS = 180_000
const model = createTinyModel({ layerCount: 2, contextLength: 300 })
const runners: StageRunner[] = []

afterAll(async () => {
  await Promise.all(runners.map((runner) => runner.close()))
})

async function greedy(prefer: 'webgpu' | 'wasm'): Promise<number[]> {
  const runner = createWorkerStageRunner({ prefer })
  runners.push(runner)
  const report = await runner.start()
  expect(report.provider, report.notes.join()).toBe(prefer)
  const whole = { start: 0, end: 4 }
  for (const block of await runner.setStage(model.manifest, whole)) {
    await runner.loadBlock(block, await model.blockBytes(block))
  }
  // 250, then 12: over the first step of the cache's capacity, so its rows are moved to a larger buffer.
  const prompt = Int32Array.from({ length: 262 }, (_, i) => (i * 29 + 5) % model.manifest.vocabSize)
  const chosen: number[] = []
  let position = 0
  const step = async (ids: Int32Array, sample: boolean): Promise<void> => {
    const output = await runner.run({
      session: 1 as SessionId,
      position,
      input: { kind: 'tokens', ids },
      sample: sample ? { params: GREEDY, history: new Int32Array(0), promptLength: 0 } : null,
    })
    position += ids.length
    if (output.kind === 'token') chosen.push(output.sampled.token)
  }
  await step(prompt.slice(0, 250), false)
  await step(prompt.slice(250), true)
  for (let i = 0; i < 4; i++) await step(Int32Array.of(chosen.at(-1) ?? 0), true)
  // Back to an earlier position: the same buffer, a smaller total.
  position = 250
  await step(prompt.slice(250), true)
  return chosen
}

it(
  'gives the same greedy tokens on WebGPU as on WASM',
  async () => {
    const onGpu = await greedy('webgpu')
    expect(onGpu).toHaveLength(6)
    expect(onGpu.at(-1)).toBe(onGpu[0])
    expect(onGpu).toEqual(await greedy('wasm'))
  },
  LIMIT_MS,
)

it(
  'passes a software GPU over unless it is asked for, and says so',
  async () => {
    const runner = createWorkerStageRunner({ prefer: 'auto' })
    runners.push(runner)
    const report = await runner.start()
    expect(report.provider).toBe('wasm')
    expect(report.notes.join()).toContain('webgpu: ')
  },
  LIMIT_MS,
)
