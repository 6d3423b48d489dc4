import { CrowdError, toCrowdError } from '../core/errors.ts'
import { PREFILL_CHUNK_TOKENS } from '../core/limits.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { prefillChunks } from '../core/model/prefill-chunks.ts'
import type { SampledToken } from '../core/sampling/params.ts'
import type { ActivationFrame, Frame, TokenFrame } from '../core/wire/frame.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageOutput, StageStep } from '../runtime/stage-runner.ts'
import { createDeferred } from './deferred.ts'
import { createFramesIn } from './frames-in.ts'
import { createLastStage, type LastStage } from './last-stage.ts'
import type { StepQueue } from './step-queue.ts'
import { createRowsOut } from './rows-out.ts'
import { createStepRun, type SessionRecord, type StageProgress } from './step-run.ts'

export type SessionOrder = ServerMessageOf<'session-open'>

/** What a session needs to know of the model. */
export type SessionModel = Pick<Manifest, 'hiddenSize' | 'contextLength' | 'eosTokenIds'>

/** Where this stage's part begins, and for the first one the token ids from there on. */
export type SessionStart = Pick<ServerMessageOf<'session-start'>, 'from' | 'forward' | 'prompt'>

export type StageSessionDeps = {
  queue: StepQueue
  record: SessionRecord
  model: SessionModel
  /** To the next stage of the route (from the last one to the first). */
  sendFrame(frame: Frame): Promise<void>
  /** To the host. */
  tell(message: ClientMessage): void
  /** A step was computed here: rows and ms. */
  onStep(tokens: number, computeMs: number): void
  now(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

/** This stage's part in one session and epoch. Steps run one after the other, in the order they came, once it is started. */
export type StageSession = {
  /**
   * Sends again what the next stage lacks; the first stage then sends the tokens through the chain, several chunks in
   * flight. @throws CrowdError bad-message when it can't be meant
   */
  start(start: SessionStart): void
  /**
   * A frame of this session from the stage before. One that isn't next ends the session. @throws CrowdError bad-frame when
   * this stage takes none of its kind
   */
  onFrame(frame: ActivationFrame | TokenFrame): void
  /** Ends with an error, told to the host once; nothing after an end. */
  fail(error: CrowdError): void
  /** Nothing more is computed or sent. */
  close(): void
  /** Resolves when no step runs any more; after close() that is soon. */
  settled(): Promise<void>
  progress(): StageProgress
}

/** Decode steps between two reports of this stage's compute time; the first one is reported too. */
const STEPS_PER_REPORT = 16
/** What a frame can say, µs. */
const MICROS_MAX = 0xffff_ffff

export function createStageSession(deps: StageSessionDeps, order: SessionOrder): StageSession {
  const isFirst = order.stage === 0
  const isLast = order.stage === order.stages.length - 1
  const head = { session: order.session, epoch: order.epoch }
  const { eosTokenIds } = deps.model
  const lastStage = isLast ? createLastStage({ ...deps, eosTokenIds }, order) : null
  let closed = false
  let step = 0
  let decodeSteps = 0
  let decodeMs = 0
  let forward = 0
  const started = createDeferred<undefined>()
  // Frames may overtake the host's word to start, which says what is to be sent on.
  let tail: Promise<unknown> = started.promise

  const framesIn = createFramesIn({ ...order, contextLength: deps.model.contextLength })
  const steps = createStepRun({ ...deps, isWanted: () => !closed, onHung: fail })
  const out = createRowsOut({
    head: { ...head, hiddenSize: deps.model.hiddenSize },
    sent: deps.record.sent,
    forward: () => forward,
    sendFrame: deps.sendFrame,
  })

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
    const { position, input, rows } = work
    const sample = work.sample && lastStage !== null ? lastStage.sampleRequest() : null
    const output = await steps.run({ session: order.session, position, input, sample }, rows)
    if (closed) return
    deps.onStep(work.rows, output.computeMs)
    const micros = work.computeMicros + Math.round(output.computeMs * 1_000)
    // The stage before said the first part: its number must not make this stage's frame a bad one.
    const computeMicros = Math.min(micros, MICROS_MAX)
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
    const { position, rows, sample } = work
    const { data } = output
    step += 1
    await out.passOn({ position, rows, data }, { step: step - 1, sample, computeMicros })
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
    start(start) {
      if (isFirst !== start.prompt.length > 0)
        throw new CrowdError('bad-message', 'a prompt goes to the first stage only')
      if (!isFirst) framesIn.begin(start.from)
      forward = start.forward
      if (!isLast && forward < start.from)
        enqueue(() => out.replay(forward, start.from, () => closed))
      started.resolve(undefined)
      for (const chunk of prefillChunks(start.prompt, PREFILL_CHUNK_TOKENS)) {
        enqueue(() =>
          compute({
            position: start.from + chunk.position,
            input: { kind: 'tokens', ids: chunk.ids },
            rows: chunk.ids.length,
            sample: chunk.last,
            computeMicros: 0,
          }),
        )
      }
    },
    onFrame(frame) {
      if (closed) return
      if (frame.kind === 'token' && (!isFirst || isLast))
        throw new CrowdError('bad-frame', 'a token goes from the last stage to the first')
      if (frame.kind === 'activation' && isFirst)
        throw new CrowdError('bad-frame', 'an activation came to the first stage')
      try {
        framesIn.take(frame)
      } catch (thrown) {
        fail(toCrowdError(thrown))
        return
      }
      if (frame.kind === 'token') enqueue(() => decode(frame.token, frame.position))
      else
        enqueue(() =>
          compute({
            position: frame.position,
            input: { kind: 'hidden', data: frame.data },
            rows: frame.tokenCount,
            sample: frame.sample,
            computeMicros: frame.computeMicros,
          }),
        )
    },
    fail,
    close() {
      closed = true
      started.resolve(undefined)
    },
    async settled() {
      await tail
    },
    progress: steps.progress,
  }
}
