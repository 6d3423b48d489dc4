import * as ort from 'onnxruntime-node'
import { describe, expect, it } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { BackendCandidate, OrtBackend } from './ort-backend.ts'
import { createOrtQueue } from './ort-queue.ts'
import { createOrtStageRunner } from './ort-stage-runner.ts'
import { selfTest } from './self-test.ts'
import { createStageEngine, type StageEngine } from './stage-engine.ts'
import type { StageOutput, StageStep } from './stage-runner.ts'
import { createTinyModel } from './tiny-model.ts'

const SESSION = 1 as SessionId
const model = createTinyModel({ layerCount: 2 })

type TestBackend = OrtBackend & { lose(reason: string): void; isClosed: boolean }

function testBackend(): TestBackend {
  let failure: string | null = null
  const backend: TestBackend = {
    ort,
    report: { provider: 'cpu', threads: 1, notes: [] },
    sessionOptions: { executionProviders: ['cpu'], intraOpNumThreads: 1, logSeverityLevel: 4 },
    device: null,
    failure: () => failure,
    isClosed: false,
    close() {
      backend.isClosed = true
    },
    lose(reason) {
      failure = reason
    },
  }
  return backend
}

const working = (backend = testBackend()): BackendCandidate => ({
  name: 'cpu',
  open: () => Promise.resolve(backend),
})

const missing: BackendCandidate = {
  name: 'webgpu',
  open: () => Promise.reject(new CrowdError('provider-unavailable', 'no GPU here')),
}

function runnerOf(candidates: BackendCandidate[], test = selfTest) {
  return createOrtStageRunner({ candidates, queue: createOrtQueue(), selfTest: test })
}

const step = (position: number, rows = 1): StageStep => ({
  session: SESSION,
  position,
  input: { kind: 'hidden', data: new Float32Array(rows * model.config.hiddenSize).fill(0.5) },
  sample: null,
})

describe('choosing a provider', () => {
  it('takes the first one that opens, and says why others were passed over', async () => {
    const runner = runnerOf([missing, working()])
    const report = await runner.start()
    expect(report).toMatchObject({ provider: 'cpu', notes: ['webgpu: no GPU here'] })
    expect(await runner.start()).toEqual(report)
    await runner.close()
  })

  it('passes a provider over that computes wrong numbers, and closes it', async () => {
    const wrong = testBackend()
    let tries = 0
    const runner = runnerOf([working(wrong), working()], async (engine) => {
      if (tries++ === 0) throw new CrowdError('self-test-failed', 'wrong by 3')
      await selfTest(engine)
    })
    expect((await runner.start()).notes).toEqual(['cpu: wrong by 3'])
    expect(wrong.isClosed).toBe(true)
    await runner.close()
  })

  it('rejects when none is left', async () => {
    await expect(runnerOf([missing, missing]).start()).rejects.toMatchObject({
      code: 'provider-unavailable',
      message: 'webgpu: no GPU here; webgpu: no GPU here',
    })
    const failing = runnerOf([working()], () =>
      Promise.reject(new CrowdError('self-test-failed', 'wrong')),
    )
    await expect(failing.start()).rejects.toMatchObject({ code: 'self-test-failed' })
    await expect(failing.run(step(0))).rejects.toMatchObject({ code: 'stage-failed' })
  })

  it('fails every call after a device loss; a new start tests again and wants all blocks', async () => {
    const lost = testBackend()
    const backends = [lost, testBackend()]
    let tests = 0
    const runner = runnerOf(
      [{ name: 'gpu', open: () => Promise.resolve(backends.shift() ?? testBackend()) }],
      async (engine) => {
        tests++
        await selfTest(engine)
      },
    )
    await runner.start()
    await runner.setStage(model.manifest, { start: 1, end: 2 })
    await runner.loadBlock(1, await model.blockBytes(1))
    await runner.run(step(0))
    lost.lose('the GPU device was lost: driver reset')
    await expect(runner.run(step(1))).rejects.toMatchObject({
      code: 'stage-failed',
      message: expect.stringContaining('driver reset') as unknown,
    })
    await expect(runner.run(step(0))).rejects.toMatchObject({ code: 'stage-failed' })
    for (const call of [
      () => runner.setStage(model.manifest, { start: 1, end: 3 }),
      async () => runner.loadBlock(1, await model.blockBytes(1)),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'stage-failed' })
    const report = await runner.start()
    expect(report.notes).toEqual(['the GPU device was lost: driver reset'])
    expect(tests).toBe(2)
    expect(lost.isClosed).toBe(true)
    expect(await runner.setStage(model.manifest, { start: 1, end: 2 })).toEqual([1])
    await runner.loadBlock(1, await model.blockBytes(1))
    await expect(runner.run(step(0))).resolves.toMatchObject({ kind: 'hidden' })
    await runner.close()
  })

  it('closes what a start was opening when it was closed itself', async () => {
    const backend = testBackend()
    const opening: ((backend: OrtBackend) => void)[] = []
    const open = () => new Promise<OrtBackend>((resolve) => opening.push(resolve))
    const runner = runnerOf([{ name: 'cpu', open }])
    const starting = runner.start()
    const closing = runner.close()
    await expect.poll(() => opening.length).toBe(1)
    opening[0]?.(backend)
    await expect(starting).rejects.toMatchObject({ code: 'stage-failed' })
    await closing
    expect(backend.isClosed).toBe(true)
    await expect(runner.run(step(0))).rejects.toMatchObject({ code: 'stage-failed' })
  })

  it('refuses the output of a step during which the device was lost', async () => {
    const backend = testBackend()
    const engine = createStageEngine({ backend, queue: createOrtQueue() })
    await engine.setStage(model.manifest, { start: 1, end: 2 })
    await engine.loadBlock(1, await model.blockBytes(1))
    const running = engine.run(step(0))
    await Promise.resolve()
    backend.lose('lost')
    await expect(running).rejects.toMatchObject({ code: 'stage-failed', message: 'lost' })
    await engine.close()
  })
})

describe('the self-test', () => {
  async function tested(change: (engine: StageEngine) => StageEngine): Promise<void> {
    const engine = createStageEngine({ backend: testBackend(), queue: createOrtQueue() })
    try {
      await selfTest(change(engine))
    } finally {
      await engine.close()
    }
  }

  it('passes on right numbers', async () => {
    await expect(tested((engine) => engine)).resolves.toBeUndefined()
  })

  it.each<[string, number, number]>([
    ['a wrong prefill', 0, 1e-3],
    ['a wrong token after it', 40, 1e-3],
    ['a wrong long chunk on top', 41, 1e-3],
    ['NaN', 40, NaN],
  ])('fails on %s', async (_name, position, error) => {
    const spoiled = tested((engine) => ({
      ...engine,
      async run(request) {
        const output = await engine.run(request)
        if (output.kind === 'hidden' && request.position === position) {
          output.data[7] = (output.data[7] ?? 0) + error
        }
        return output
      },
    }))
    await expect(spoiled).rejects.toMatchObject({ code: 'self-test-failed' })
  })

  it.each([
    ['another token', [1, 0]],
    ['a wrong probability', [0, -1e-3]],
  ] as const)('fails when the head gives %s', async (_name, change) => {
    const spoiled = tested((engine) => ({
      ...engine,
      async run(request) {
        const output = await engine.run(request)
        if (output.kind !== 'token') return output
        const { token, logprob, top } = output.sampled
        const [tokens, shift] = change
        return { ...output, sampled: { token: token + tokens, logprob: logprob + shift, top } }
      },
    }))
    await expect(spoiled).rejects.toMatchObject({ code: 'self-test-failed' })
  })

  it('notices a cache that loses its rows', async () => {
    const forgetful = tested((engine) => ({
      ...engine,
      async run(request) {
        if (request.position !== 41) return engine.run(request)
        // The same rows as if the first 41 had been other ones.
        await engine.run({ ...step(0, 41), session: request.session })
        return engine.run(request)
      },
    }))
    await expect(forgetful).rejects.toMatchObject({ code: 'self-test-failed' })
  })
})

describe('a stage', () => {
  async function engineWith(
    change: (bytes: { graph: Uint8Array | null; data: Uint8Array }) => void,
  ) {
    const engine = createStageEngine({ backend: testBackend(), queue: createOrtQueue() })
    await engine.setStage(model.manifest, { start: 1, end: 2 })
    const bytes = await model.blockBytes(1)
    change(bytes)
    return { engine, loading: engine.loadBlock(1, bytes) }
  }

  it('refuses to send what is not finite, and the session goes on from the same position', async () => {
    const engine = createStageEngine({ backend: testBackend(), queue: createOrtQueue() })
    await engine.setStage(model.manifest, { start: 0, end: 2 })
    const table = await model.blockBytes(0)
    // One row of the embedding is rubbish; every other token is fine.
    const { hiddenSize } = model.config
    new Float32Array(table.data.buffer, 5 * hiddenSize * 4, hiddenSize).fill(NaN)
    await engine.loadBlock(0, table)
    await engine.loadBlock(1, await model.blockBytes(1))
    const tokens = (position: number, ...ids: number[]): StageStep => ({
      ...step(position),
      input: { kind: 'tokens', ids: Int32Array.from(ids) },
    })
    await engine.run(tokens(0, 1, 2, 3))
    await expect(engine.run(tokens(3, 4, 5))).rejects.toMatchObject({ code: 'non-finite' })
    const good = await engine.run(tokens(3, 4, 6))
    await engine.release(SESSION)
    const whole = await engine.run(tokens(0, 1, 2, 3, 4, 6))
    const lastRow = dataOf(whole).slice(3 * hiddenSize)
    expect(largestDifference(dataOf(good), lastRow)).toBeLessThan(1e-5)
    // What lay behind the position of a failed step was overwritten, so it can't be built upon.
    await expect(engine.run(tokens(1, 5))).rejects.toMatchObject({ code: 'non-finite' })
    await expect(engine.run(tokens(5, 1))).rejects.toMatchObject({ code: 'stage-failed' })
    await expect(engine.run(tokens(1, 2, 3))).resolves.toMatchObject({ kind: 'hidden' })
    await engine.close()
  })

  it('refuses weights that are not finite at the first step', async () => {
    const { engine, loading } = await engineWith(({ data }) => {
      new Float32Array(data.buffer, 0, 64).fill(NaN)
    })
    await loading
    await expect(engine.run(step(0))).rejects.toMatchObject({ code: 'non-finite' })
    await engine.close()
  })

  it('says model-invalid for a graph that is none', async () => {
    const { engine, loading } = await engineWith(({ graph }) => {
      graph?.fill(0xff)
    })
    await expect(loading).rejects.toMatchObject({ code: 'model-invalid' })
    await engine.loadBlock(1, await model.blockBytes(1))
    await expect(engine.run(step(0))).resolves.toMatchObject({ kind: 'hidden' })
    await engine.close()
  })
})

function dataOf(output: StageOutput): Float32Array {
  if (output.kind !== 'hidden') throw new Error(`expected hidden rows, got ${output.kind}`)
  return output.data
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  expect(a.length).toBe(b.length)
  return a.reduce((most, value, i) => Math.max(most, Math.abs(value - (b[i] ?? NaN))), 0)
}
