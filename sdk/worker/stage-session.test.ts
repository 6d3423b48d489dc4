import { expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { PeerId, SessionId } from '../core/ids.ts'
import { PREFILL_CHUNK_TOKENS } from '../core/limits.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { GREEDY } from '../core/sampling/params.ts'
import { decodeFrame, encodeFrame, type Frame } from '../core/wire/frame.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { StageOutput, StageStep } from '../runtime/stage-runner.ts'
import type { SessionRecord } from './step-run.ts'
import { createSentRows } from './sent-rows.ts'
import { createStepQueue } from './step-queue.ts'
import {
  createStageSession,
  type SessionOrder,
  type StageSession,
  type StageSessionDeps,
} from './stage-session.ts'

const HIDDEN = 4
const EOS = 9
// Only what a session reads of a manifest.
const manifest = {
  hiddenSize: HIDDEN,
  eosTokenIds: [EOS],
  contextLength: 1_000,
} as unknown as Manifest

/**
 * A ring of sessions whose stages do nothing but remember their steps; the last one "chooses" the given
 * tokens. Frames go through the real codec.
 */
function ring(
  stageCount: number,
  tokens: number[],
  change: Partial<SessionOrder> = {},
  later: StageSessionDeps['later'] = () => () => undefined,
) {
  const records: SessionRecord[] = []
  const told: ClientMessage[] = []
  const steps: StageStep[][] = []
  const frames: Frame[] = []
  const sessions: StageSession[] = []
  let failAt: number | null = null
  let hangs = false
  let settle: () => void = () => undefined
  const over = new Promise<void>((resolve) => {
    settle = resolve
  })
  const stages = Array.from({ length: stageCount }, (_, index) => ({
    peer: `p${index}` as PeerId,
    range: { start: index, end: index + 1 },
  }))

  for (let stage = 0; stage < stageCount; stage += 1) {
    const mine: StageStep[] = []
    steps.push(mine)
    const run = (step: StageStep): Promise<StageOutput> => {
      mine.push(step)
      if (hangs) return new Promise(() => undefined)
      if (failAt === stage) return Promise.reject(new CrowdError('non-finite', 'a stage made NaN'))
      if (stage < stageCount - 1) {
        const rows =
          step.input.kind === 'tokens' ? step.input.ids.length : step.input.data.length / HIDDEN
        return Promise.resolve({
          kind: 'hidden',
          data: new Float32Array(rows * HIDDEN).fill(stage + 1),
          computeMs: 2,
        })
      }
      if (step.sample === null) return Promise.resolve({ kind: 'nothing', computeMs: 2 })
      const token = tokens.shift() ?? EOS
      return Promise.resolve({
        kind: 'token',
        sampled: { token, logprob: -1, top: [] },
        computeMs: 2,
      })
    }
    const order: SessionOrder = {
      kind: 'session-open',
      session: 7 as SessionId,
      epoch: 0,
      answered: 0,
      valid: 0,
      stage,
      stages,
      nextPair: null,
      sampling: GREEDY,
      history: [],
      promptLength: 3,
      maxTokens: 100,
      stopIds: [],
      ...change,
    }
    const sent = createSentRows({ limitBytes: 1e6, usedBytes: 0 }, HIDDEN)
    const record = { cached: 0, sent }
    records.push(record)
    sessions.push(
      createStageSession(
        {
          queue: createStepQueue({ run }),
          record,
          model: manifest,
          sendFrame: (frame) => {
            const read = decodeFrame(encodeFrame(frame))
            frames.push(read)
            if (read.kind === 'activation' || read.kind === 'token')
              sessions[(stage + 1) % stageCount]?.onFrame(read)
            return Promise.resolve()
          },
          tell: (message) => {
            told.push(message)
            if (message.kind === 'session-end' || message.kind === 'session-failed') settle()
          },
          onStep: () => undefined,
          now: () => 0,
          later,
        },
        order,
      ),
    )
  }
  function start(prompt: number[]): void {
    for (const session of sessions.toReversed())
      session.start({ from: 0, forward: 0, prompt: session === sessions[0] ? prompt : [] })
  }
  return {
    sessions,
    records,
    start,
    told,
    steps,
    frames,
    over,
    failStage: (stage: number) => (failAt = stage),
    hang: () => (hangs = true),
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

const tokensOf = (told: ClientMessage[]) =>
  told.flatMap((message) =>
    message.kind === 'session-token' ? [[message.position, message.sampled.token]] : [],
  )

test.each([1, 2, 3])(
  'a ring of %i stages laps until the end token, one position at a time',
  async (stageCount) => {
    const { start, told, steps, over } = ring(stageCount, [4, 5, EOS])
    start([1, 2, 3])
    await over
    expect(tokensOf(told)).toEqual([
      [3, 4],
      [4, 5],
      [5, EOS],
    ])
    expect(told.at(-1)).toMatchObject({ kind: 'session-end', reason: 'stop' })
    for (const mine of steps) expect(mine.map((step) => step.position)).toEqual([0, 3, 4])
    expect(
      steps[0]?.map((step) => (step.input.kind === 'tokens' ? [...step.input.ids] : null)),
    ).toEqual([[1, 2, 3], [4], [5]])
  },
)

test('the answer ends at its limit', async () => {
  const { start, told, over } = ring(2, [4, 5, 6], { promptLength: 1, maxTokens: 2 })
  start([1])
  await over
  expect(tokensOf(told).map(([, token]) => token)).toEqual([4, 5])
  expect(told.at(-1)).toMatchObject({ kind: 'session-end', reason: 'length' })
})

test('a stop id of the asker ends the answer like an end token', async () => {
  const { start, told, over } = ring(2, [4, 5, 6], { promptLength: 1, stopIds: [5] })
  start([1])
  await over
  expect(told.at(-1)).toMatchObject({ kind: 'session-end', reason: 'stop' })
})

test('a long prompt goes in chunks and only the last one samples', async () => {
  const promptLength = PREFILL_CHUNK_TOKENS * 2 + 5
  const { start, steps, frames, over } = ring(2, [EOS], { promptLength })
  start(Array.from({ length: promptLength }, (_, id) => id))
  await over
  expect(steps[1]?.map((step) => step.position)).toEqual([
    0,
    PREFILL_CHUNK_TOKENS,
    2 * PREFILL_CHUNK_TOKENS,
  ])
  expect(steps[1]?.map((step) => step.sample !== null)).toEqual([false, false, true])
  expect(frames.map((frame) => frame.kind === 'activation' && frame.sample)).toEqual([
    false,
    false,
    true,
  ])
})

test('the last stage alone keeps the history, and only where its sampler needs it', async () => {
  const penal = { ...GREEDY, repetitionPenalty: 1.2 }
  const { start, steps, over } = ring(2, [4, EOS], { sampling: penal, history: [1, 2, 3] })
  start([1, 2, 3])
  await over
  expect(steps[1]?.map((step) => [...(step.sample?.history ?? [])])).toEqual([
    [1, 2, 3],
    [1, 2, 3, 4],
  ])
  expect(steps[0]?.every((step) => step.sample === null)).toBe(true)
})

test('compute time of a lap adds up on its way and is told with the end', async () => {
  const { start, told, over } = ring(3, [4, 5, EOS], { promptLength: 1 })
  start([1])
  await over
  expect(told.find((message) => message.kind === 'session-timings')).toMatchObject({
    timings: { tokens: 3, computeMs: 6, hops: 3 },
  })
})

test('every stage tells its compute time at its first decode step', async () => {
  const { start, told, over } = ring(3, [4, 5, EOS], { promptLength: 2 })
  start([1, 2])
  await over
  const steps = told.filter((message) => message.kind === 'session-step')
  expect(steps).toEqual(
    Array.from({ length: 3 }, () => ({ kind: 'session-step', session: 7, epoch: 0, computeMs: 2 })),
  )
})

test('SE6 a failing stage is told once, with its code, and computes no more', async () => {
  const { start, told, steps, over, failStage } = ring(2, [4], { promptLength: 100 })
  failStage(1)
  start(Array.from({ length: 100 }, () => 1))
  await over
  await Promise.resolve()
  expect(told.filter((message) => message.kind === 'session-failed')).toHaveLength(1)
  expect(told[0]).toMatchObject({ error: { code: 'non-finite' } })
  expect(steps[1]).toHaveLength(1)
})

test('a closed session drops what still arrives', async () => {
  const { sessions, start, told, steps } = ring(2, [4])
  sessions[1]?.close()
  start([1, 2])
  await new Promise((resolve) => setImmediate(resolve))
  expect(steps[0]).toHaveLength(1)
  expect(steps[1]).toHaveLength(0)
  expect(told).toEqual([])
})

test('frames that the route does not send are refused', () => {
  const { sessions } = ring(2, [4])
  const head = { session: 7 as SessionId, epoch: 0, step: 0, position: 0, computeMicros: 0 }
  expect(() => sessions[1]?.onFrame({ kind: 'token', ...head, token: 1 })).toThrow(
    'last stage to the first',
  )
  expect(() =>
    sessions[0]?.onFrame({
      kind: 'activation',
      ...head,
      tokenCount: 1,
      hiddenSize: HIDDEN,
      sample: true,
      data: new Float32Array(HIDDEN),
    }),
  ).toThrow('first stage')
  expect(() => sessions[1]?.start({ from: 0, forward: 0, prompt: [1] })).toThrow('first stage only')
})

const rows = (position: number, tokenCount: number, sample: boolean): Frame => ({
  kind: 'activation',
  session: 7 as SessionId,
  epoch: 0,
  step: 0,
  position,
  computeMicros: 0,
  tokenCount,
  hiddenSize: HIDDEN,
  sample,
  data: new Float32Array(tokenCount * HIDDEN),
})

test('SE5 SE12 rows out of their turn end the session at every stage, and what still comes is dropped', async () => {
  for (const stage of [1, 2]) {
    const { sessions, told, steps } = ring(3, [4, 5])
    sessions[stage]?.start({ from: 0, forward: 0, prompt: [] })
    for (const sample of [false, true]) sessions[stage]?.onFrame(rows(0, 3, sample))
    await settled()
    expect(told).toMatchObject([{ kind: 'session-failed', error: { code: 'bad-frame' } }])
    expect(steps[stage]).toEqual([])
  }
})

test('SE12 the first stage takes a token at its own place only', async () => {
  const { sessions, told, steps } = ring(2, [])
  // The other one computes nothing.
  sessions[1]?.close()
  sessions[0]?.start({ from: 0, forward: 0, prompt: [1, 2, 3] })
  const head = { session: 7 as SessionId, epoch: 0, step: 0, computeMicros: 0 }
  sessions[0]?.onFrame({ kind: 'token', ...head, position: 2, token: 4 })
  await settled()
  expect(told).toMatchObject([{ kind: 'session-failed', error: { code: 'bad-frame' } }])
  expect(steps[0]).toEqual([])
})

test('SE12 a compute time that is all a frame can say is no fault of whoever adds to it', async () => {
  const { sessions, told, frames } = ring(3, [EOS])
  for (const session of sessions.slice(1)) session.start({ from: 0, forward: 0, prompt: [] })
  sessions[1]?.onFrame({ ...rows(0, 3, true), computeMicros: 0xffff_ffff })
  await settled()
  expect(frames).toMatchObject([{ kind: 'activation', computeMicros: 0xffff_ffff }])
  expect(told.at(-1)).toMatchObject({ kind: 'session-end' })
})

const rowsAt = (position: number, rows: number): Float32Array =>
  new Float32Array(rows * HIDDEN).fill(position)

test('RE3 a stage sends again what the next one lacks, before anything new, and samples after none of it', async () => {
  const { sessions, records, frames } = ring(3, [], { promptLength: 40, answered: 2 })
  records[0]?.sent.append(0, rowsAt(0, 40))
  records[0]?.sent.append(40, rowsAt(40, 1))
  Object.assign(records[0] ?? {}, { cached: 41 })
  sessions[0]?.start({ from: 41, forward: 2, prompt: [7] })
  await settled()
  expect(
    frames.map((frame) =>
      frame.kind === 'activation' ? [frame.position, frame.tokenCount, frame.sample] : null,
    ),
  ).toEqual([
    [2, 32, false],
    [34, 7, false],
    [41, 1, true],
  ])
})

test('RE3 rows that the next stage has already are computed for the caches alone', async () => {
  const { sessions, steps, frames } = ring(2, [], { promptLength: 35 })
  sessions[0]?.start({ from: 0, forward: 33, prompt: Array.from({ length: 35 }, (_, id) => id) })
  await settled()
  expect(steps[0]?.map((step) => step.position)).toEqual([0, 32])
  expect(frames).toMatchObject([{ position: 33, tokenCount: 2, sample: true }])
})

test('RE7 what is not kept any more is said, not made up', async () => {
  const { sessions, told, over } = ring(2, [])
  sessions[0]?.start({ from: 9, forward: 0, prompt: [7] })
  await over
  expect(told).toMatchObject([{ kind: 'session-failed', error: { code: 'stage-lost' } }])
})

test('SE1 frames that overtake the word to start wait for it', async () => {
  const { sessions, steps } = ring(2, [4], { promptLength: 2 })
  sessions[0]?.start({ from: 0, forward: 0, prompt: [1, 2] })
  await settled()
  expect(steps[1]).toEqual([])
  sessions[1]?.start({ from: 0, forward: 0, prompt: [] })
  await settled()
  expect(steps[1]?.[0]?.position).toBe(0)
})

test('RE2 the answer so far counts against its limit', async () => {
  const { start, told, over } = ring(2, [4, 5], { promptLength: 1, answered: 2, maxTokens: 3 })
  start([1, 4, 4])
  await over
  expect(told.at(-1)).toMatchObject({ kind: 'session-end', reason: 'length' })
  expect(tokensOf(told)).toHaveLength(1)
})

test('SE6 a step that hangs fails the session at once, and nothing waits for it', async () => {
  const tasks: (() => void)[] = []
  const { start, told, over, hang } = ring(1, [4], {}, (_, task) => {
    tasks.push(task)
    return () => undefined
  })
  hang()
  start([1])
  await settled()
  expect(told).toEqual([])
  tasks.at(-1)?.()
  await over
  expect(told).toMatchObject([{ kind: 'session-failed', error: { code: 'timeout' } }])
})
