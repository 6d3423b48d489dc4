import { CrowdError, toCrowdError } from '../core/errors.ts'
import { PREFILL_CHUNK_TOKENS } from '../core/limits.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { prefillChunks } from '../core/model/prefill-chunks.ts'
import { needsHistory, type SampledToken } from '../core/sampling/params.ts'
import { createLapMeter } from '../core/session/lap-meter.ts'
import type { FinishReason } from '../core/session/request.ts'
import type { ActivationFrame, Frame, TokenFrame } from '../core/wire/frame.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageOutput, StageRunner, StageStep } from '../runtime/stage-runner.ts'

export type SessionOrder = ServerMessageOf<'session-open'>

/** What a session needs to know of the model. */
export type SessionModel = Pick<Manifest, 'hiddenSize' | 'contextLength' | 'eosTokenIds'>

export type StageSessionDeps = {
  runner: Pick<StageRunner, 'run'>
  model: SessionModel
  /** To the next stage of the route (from the last one to the first). */
  sendFrame(frame: Frame): Promise<void>
  /** To the host. */
  tell(message: ClientMessage): void
  /** A step was computed here: rows and ms. */
  onStep(tokens: number, computeMs: number): void
  now(): number
}

/** This stage's part in one session and epoch. Steps run one after the other, in the order they came. */
export type StageSession = {
  /** First stage only: sends the prompt through the chain, several chunks in flight. */
  start(prompt: readonly number[]): void
  /** A frame of this session from `fromStage`'s peer. @throws CrowdError bad-frame when it can't be meant */
  onFrame(frame: ActivationFrame | TokenFrame): void
  /** Ends with an error, told to the host once; nothing after an end. */
  fail(error: CrowdError): void
  /** Nothing more is computed or sent. */
  close(): void
}

/** Decode steps between two reports of this stage's compute time; the first one is reported too. */
const STEPS_PER_REPORT = 16

/** How often the last stage tells the host its timings while an answer runs. */
const TIMINGS_MS = 1_000

export function createStageSession(deps: StageSessionDeps, order: SessionOrder): StageSession {
  const isFirst = order.stage === 0
  const isLast = order.stage === order.stages.length - 1
  const head = { session: order.session, epoch: order.epoch }
  const lastStage = isLast ? createLastStage(deps, order) : null
  let closed = false
  let step = 0
  /** Rows of activations that came in and are not computed yet. */
  let waitingRows = 0
  let decodeSteps = 0
  let decodeMs = 0
  let tail: Promise<void> = Promise.resolve()

  function fail(error: CrowdError): void {
    if (closed) return
    closed = true
    deps.tell({ kind: 'session-failed', ...head, error: error.toWire() })
  }

  /** Runs `work` after all that came before; a failure ends the session once and is told to the host. */
  function enqueue(work: () => Promise<void>): void {
    tail = tail.then(async () => {
      if (closed) return
      try {
        await work()
      } catch (thrown) {
        fail(toCrowdError(thrown, 'stage-failed'))
      }
    })
  }

  type Work = {
    position: number
    input: StageStep['input']
    rows: number
    sample: boolean
    computeMicros: number
  }

  async function compute(work: Work): Promise<void> {
    const output = await deps.runner.run({
      session: order.session,
      position: work.position,
      input: work.input,
      sample: work.sample && lastStage !== null ? lastStage.sampleRequest() : null,
    })
    if (closed) return
    deps.onStep(work.rows, output.computeMs)
    const computeMicros = work.computeMicros + Math.round(output.computeMs * 1_000)
    if (work.rows === 1) countStep(output.computeMs)
    if (lastStage === null) await passOn(output, work, computeMicros)
    else if (output.kind === 'token')
      await choose(lastStage, output.sampled, work.position + work.rows, computeMicros)
  }

  /** Told before the frame goes on, so that the host hears of the first step before the answer can end. */
  function countStep(computeMs: number): void {
    decodeMs += computeMs
    decodeSteps += 1
    if (decodeSteps % STEPS_PER_REPORT !== 1) return
    deps.tell({ kind: 'session-step', ...head, computeMs: decodeMs / decodeSteps })
  }

  async function passOn(output: StageOutput, work: Work, computeMicros: number): Promise<void> {
    if (output.kind !== 'hidden')
      throw new CrowdError('internal', `stage ${order.stage} gave ${output.kind}`)
    const { hiddenSize } = deps.model
    const frame: Frame = {
      kind: 'activation',
      ...head,
      step,
      position: work.position,
      tokenCount: work.rows,
      hiddenSize,
      sample: work.sample,
      data: output.data,
      computeMicros,
    }
    step += 1
    await deps.sendFrame(frame)
  }

  /**
   * A token was chosen: round the ring for the next lap unless the answer ends, and to the host. The ring
   * goes first, since the next stage waits for it.
   */
  async function choose(
    last: LastStage,
    sampled: SampledToken,
    position: number,
    computeMicros: number,
  ): Promise<void> {
    const reason = last.chosen(sampled)
    let sent: Promise<void> | undefined
    if (reason !== null) closed = true
    else if (isFirst) enqueue(() => decode(sampled.token, position))
    else {
      const { token } = sampled
      const frame: Frame = { kind: 'token', ...head, step, position, token, computeMicros: 0 }
      sent = deps.sendFrame(frame)
    }
    step += 1
    last.tell({ sampled, position, computeMicros, reason })
    await sent
  }

  async function decode(token: number, position: number): Promise<void> {
    await compute({
      position,
      input: { kind: 'tokens', ids: Int32Array.of(token) },
      rows: 1,
      sample: true,
      computeMicros: 0,
    })
  }

  return {
    start(prompt) {
      if (!isFirst) throw new CrowdError('bad-message', 'a prompt goes to the first stage only')
      for (const chunk of prefillChunks(prompt, PREFILL_CHUNK_TOKENS)) {
        enqueue(() =>
          compute({
            position: chunk.position,
            input: { kind: 'tokens', ids: chunk.ids },
            rows: chunk.ids.length,
            sample: chunk.last,
            computeMicros: 0,
          }),
        )
      }
    },
    onFrame(frame) {
      if (frame.kind === 'token') {
        if (!isFirst || isLast)
          throw new CrowdError('bad-frame', 'a token goes from the last stage to the first')
        enqueue(() => decode(frame.token, frame.position))
        return
      }
      if (isFirst) throw new CrowdError('bad-frame', 'an activation came to the first stage')
      // More than a whole context can't be meant, and must not pile up here.
      if (waitingRows + frame.tokenCount > deps.model.contextLength) {
        throw new CrowdError('bad-frame', `${waitingRows} rows of this session wait already`)
      }
      waitingRows += frame.tokenCount
      enqueue(async () => {
        await compute({
          position: frame.position,
          input: { kind: 'hidden', data: frame.data },
          rows: frame.tokenCount,
          sample: frame.sample,
          computeMicros: frame.computeMicros,
        })
        waitingRows -= frame.tokenCount
      })
    },
    fail,
    close() {
      closed = true
    },
  }
}

type LastStage = {
  sampleRequest(): NonNullable<StageStep['sample']>
  /** Records the choice; the reason when the answer ends with it. */
  chosen(sampled: SampledToken): EndReason | null
  /** Tells the host about the choice. */
  tell(choice: Choice): void
}

type EndReason = Extract<FinishReason, 'stop' | 'length'>
type Choice = {
  readonly sampled: SampledToken
  readonly position: number
  /** Of the whole lap. */
  readonly computeMicros: number
  readonly reason: EndReason | null
}

/** What only the last stage keeps: the answer so far, where it ends, and how long laps take. */
function createLastStage(deps: StageSessionDeps, order: SessionOrder): LastStage {
  const head = { session: order.session, epoch: order.epoch }
  const stops = new Set([...deps.model.eosTokenIds, ...order.stopIds])
  const history = needsHistory(order.sampling) ? [...order.history] : null
  const meter = createLapMeter(order.stages.length)
  let tokens = 0
  let toldAt = 0

  function tellTimings(now: number): void {
    toldAt = now
    deps.tell({
      kind: 'session-timings',
      ...head,
      timings: { promptTokens: order.promptLength, firstTokenMs: 0, ...meter.timings() },
    })
  }

  return {
    sampleRequest: () => ({
      params: order.sampling,
      history: history === null ? new Int32Array() : Int32Array.from(history),
      promptLength: order.promptLength,
    }),
    chosen(sampled) {
      tokens += 1
      history?.push(sampled.token)
      if (stops.has(sampled.token)) return 'stop'
      return tokens >= order.maxTokens ? 'length' : null
    },
    tell({ sampled, position, computeMicros, reason }) {
      const now = deps.now()
      meter.lap(now, computeMicros / 1_000)
      deps.tell({ kind: 'session-token', ...head, position, sampled })
      if (reason !== null || now - toldAt > TIMINGS_MS) tellTimings(now)
      if (reason !== null) deps.tell({ kind: 'session-end', ...head, reason })
    },
  }
}
