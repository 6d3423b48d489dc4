import { afterEach, expect, it, vi } from 'vitest'
import { describeStageRunnerContract } from '../test/contracts/stage-runner.contract.ts'
import type { PairId, PeerId, SessionId } from './core/ids.ts'
import { GREEDY } from './core/sampling/params.ts'
import { decodeFrame, encodeFrame } from './core/wire/frame.ts'
import type { ClientMessage } from './protocol/client-to-server.ts'
import type { SessionOrder } from './worker/stage-session.ts'
import type { StageRunner, StageStep } from './runtime/stage-runner.ts'
import { createTinyModel } from './runtime/tiny-model.ts'
import { createComputeThread } from './compute-thread.browser.ts'

describeStageRunnerContract('WASM in a Web Worker', {
  makeRunner: () => createComputeThread({ prefer: 'wasm' }).runner,
  model: createTinyModel({ layerCount: 3 }),
  tolerance: 1e-4,
})

afterEach(() => {
  vi.unstubAllGlobals()
})

/** The Web Workers that are made from now on. */
function watchWorkers(): Worker[] {
  const made: Worker[] = []
  vi.stubGlobal(
    'Worker',
    class extends Worker {
      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        made.push(this)
      }
    },
  )
  return made
}

function crash(worker: Worker | undefined, message: string): void {
  worker?.terminate()
  worker?.dispatchEvent(new ErrorEvent('error', { message }))
}

it('computes with several WASM threads where the page is isolated', async () => {
  const runner = createComputeThread({ prefer: 'wasm', threads: 2 }).runner
  const report = await runner.start()
  await runner.close()
  expect(report).toMatchObject({ provider: 'wasm', threads: crossOriginIsolated ? 2 : 1 })
  expect(report.notes).toHaveLength(crossOriginIsolated ? 0 : 1)
  expect(crossOriginIsolated).toBe(true)
})

const model = createTinyModel({ layerCount: 1 })
/** Anew each time: the runner gives the rows away to its thread. */
const step = (): StageStep => ({
  // A session of a runner that nobody else has.
  session: 1 as SessionId,
  position: 0,
  input: { kind: 'hidden', data: new Float32Array(model.config.hiddenSize).fill(0.5) },
  sample: null,
})

async function load(runner: StageRunner): Promise<number[]> {
  const wanted = await runner.setStage(model.manifest, { start: 1, end: 2 })
  for (const block of wanted) await runner.loadBlock(block, await model.blockBytes(block))
  return wanted
}

it('outlives its Web Worker: what waited fails, and a new start computes in a fresh one', async () => {
  const made = watchWorkers()
  const runner = createComputeThread({ prefer: 'wasm' }).runner
  await runner.start()
  await load(runner)
  const before = await runner.run(step())
  const waiting = runner.run(step())
  crash(made[0], 'out of memory')
  await expect(waiting).rejects.toMatchObject({
    code: 'stage-failed',
    message: expect.stringContaining('out of memory') as unknown,
  })
  await runner.start()
  expect(made).toHaveLength(2)
  expect(await load(runner)).toEqual([1])
  expect(await runner.run(step())).toMatchObject({
    ...before,
    computeMs: expect.any(Number) as unknown,
  })
  await runner.close()
})

it('runs sessions in the Web Worker; when it dies the host hears of each, and the next one serves anew', async () => {
  const made = watchWorkers()
  const told: ClientMessage[] = []
  const sent: Uint8Array[] = []
  const { runner, makeSessions } = createComputeThread({ prefer: 'wasm' })
  const sessions = makeSessions({
    runner,
    link: () =>
      Promise.resolve({
        lane: null,
        send: (frame: Uint8Array) => {
          sent.push(frame)
          return Promise.resolve()
        },
      }),
    tell: (message) => told.push(message),
    onStep: () => undefined,
    onChange: () => undefined,
    onBadFrame: () => undefined,
    now: () => performance.now(),
    later: () => () => undefined,
  })
  const kinds = () => told.map(({ kind }) => kind)
  await runner.start()
  await load(runner)
  await sessions.open(order(1), model.manifest)
  await expect.poll(kinds).toEqual(['session-ready'])
  sessions.start({
    kind: 'session-start',
    session: 1 as SessionId,
    epoch: 1,
    from: 0,
    forward: 0,
    prompt: [],
  })
  sessions.onFrame(BEFORE, activation())
  await expect.poll(() => sent.length, { timeout: 10_000 }).toBe(1)
  expect(decodeFrame(sent[0] ?? new Uint8Array())).toMatchObject({ kind: 'activation', session: 1 })

  crash(made[0], 'out of memory')
  expect(told.at(-1)).toMatchObject({ kind: 'session-failed', session: 1, epoch: 1 })
  await runner.start()
  await load(runner)
  await sessions.open(order(2), model.manifest)
  await expect.poll(() => told.at(-1)).toMatchObject({ kind: 'session-ready', epoch: 2 })
  await runner.close()
})

// Names that a test chooses are ids without a parser.
const [BEFORE, OWN] = ['before', 'own'] as PeerId[] as [PeerId, PeerId]

function order(epoch: number): SessionOrder {
  return {
    kind: 'session-open',
    session: 1 as SessionId,
    epoch,
    stage: 1,
    stages: [BEFORE, OWN, BEFORE].map((peer, start) => ({
      peer,
      range: { start, end: start + 1 },
    })),
    nextPair: 'pair' as PairId,
    sampling: GREEDY,
    history: [],
    answered: 0,
    valid: 0,
    promptLength: 1,
    maxTokens: 10,
    stopIds: [],
  }
}

function activation(): Uint8Array {
  const { hiddenSize } = model.config
  return encodeFrame({
    kind: 'activation',
    session: 1 as SessionId,
    epoch: 1,
    step: 0,
    position: 0,
    tokenCount: 1,
    hiddenSize,
    sample: true,
    data: new Float32Array(hiddenSize).fill(0.5),
    computeMicros: 0,
  })
}
