import { CrowdError, toCrowdError, type WireError } from '../core/errors.ts'
import type { PairId, PeerId, SessionId } from '../core/ids.ts'
import { PREFILL_CHUNK_TOKENS, REPLAY_BYTES, SESSIONS_PER_STAGE } from '../core/limits.ts'
import type { StageRows } from '../core/session/resume-plan.ts'
import { decodeFrame, encodeFrame, type Frame, type FrameExpectation } from '../core/wire/frame.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
import type { SessionRecord } from './step-run.ts'
import { createSentRows, type ReplayBudget } from './sent-rows.ts'
import { createStepQueue } from './step-queue.ts'
import {
  createStageSession,
  type SessionModel,
  type SessionOrder,
  type StageSession,
} from './stage-session.ts'

export type SessionsDeps = {
  runner: Pick<StageRunner, 'run' | 'release'>
  link(pair: PairId): Promise<FrameSink>
  tell(message: ClientMessage): void
  onStep(tokens: number, computeMs: number): void
  onChange(): void
  now(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
  /** What may be kept to be sent again; REPLAY_BYTES when absent. */
  readonly replayBytes?: number
}

/** Makes the sessions of a worker, here or in another thread. */
export type MakeSessions = (
  deps: SessionsDeps & {
    /** Sessions in another thread can't throw: this peer's frame broke the rules, its link must close. */
    onBadFrame(peer: PeerId, error: WireError): void
  },
) => Sessions

export type SessionsProgress = {
  readonly computing: boolean
  readonly sessions: readonly {
    readonly session: SessionId
    readonly epoch: number
    readonly position: number
  }[]
}

/** Where frames for the next stage go. */
export type FrameSink = {
  /** The lane in the compute thread, where there is one. */
  readonly lane: number | null
  /** Resolves when the frame was handed to the link. @throws CrowdError link-closed, timeout */
  send(frame: Uint8Array): Promise<void>
}

type Open = {
  readonly order: SessionOrder
  readonly session: StageSession
  readonly record: SessionRecord
  next: FrameSink | null
  /** Resolves when no step of an epoch before runs any more: it changes what is cached. */
  readonly formerSettled: Promise<unknown>
  /** The answer is over; what is cached waits for a next question. */
  retained: boolean
  /** The connection to the host was lost since it was opened. */
  parked: boolean
}

/** The sessions of one worker, keyed by session and epoch; frames find theirs by the header. */
export type Sessions = {
  /** A raised epoch goes on with what is cached of the session. */
  open(order: SessionOrder, model: SessionModel): Promise<void>
  start(message: ServerMessageOf<'session-start'>): void
  close(message: ServerMessageOf<'session-close'>): Promise<void>
  /** @throws CrowdError bad-frame, non-finite: the link that brought it must close */
  onFrame(peer: PeerId, bytes: Uint8Array): void
  /** A link is gone: the sessions that used it fail. */
  onLost(pair: PairId, reason: string): void
  /** Answers that go through this device; not those of a host that was lost. */
  count(): number
  /** Where they stand. Takes as long as a step where the thread that computes is asked. */
  progress(): Promise<SessionsProgress>
  /** Fails every session, whose caches are gone: another stage is loaded. */
  failAll(error: CrowdError): void
  /** The host was lost: what is not opened anew until dropParked() isn't wanted any more. */
  park(): void
  dropParked(): Promise<void>
  /** Forgets every session and frees its caches: the host has ended them. */
  dropAll(): Promise<void>
}

export function createSessions(deps: SessionsDeps): Sessions {
  const sessions = new Map<SessionId, Open>()
  const queue = createStepQueue(deps.runner)
  const budget: ReplayBudget = { limitBytes: deps.replayBytes ?? REPLAY_BYTES, usedBytes: 0 }
  /** What a frame may look like; a device holds one model at a time. */
  let expectation: FrameExpectation | undefined

  async function drop(session: SessionId): Promise<void> {
    const open = sessions.get(session)
    if (open === undefined) return
    sessions.delete(session)
    open.session.close()
    open.record.sent.cut(0)
    deps.onChange()
    // A runner that was lost meanwhile has no caches any more.
    await deps.runner.release(session).catch(() => undefined)
  }

  /** Sessions of a host that was lost give way to new ones. */
  function makeRoom(): void {
    if (sessions.size < SESSIONS_PER_STAGE) return
    const [parked] = [...sessions].find(([, open]) => open.parked) ?? []
    if (parked !== undefined) void drop(parked)
  }

  async function sendFrame(open: Open, frame: Frame): Promise<void> {
    if (open.next === null) throw new CrowdError('stage-lost', 'no link to the next stage')
    const bytes = encodeFrame(frame)
    await open.next.send(bytes).catch((thrown: unknown) => {
      const { message } = toCrowdError(thrown)
      // A link that ends with `timeout`, say, is no step of this device that took too long.
      throw new CrowdError('stage-lost', `the next stage got no frame: ${message}`)
    })
  }

  const computed = (): Open[] => [...sessions.values()].filter(({ retained }) => !retained)

  function find(session: SessionId, epoch: number): Open | null {
    const open = sessions.get(session)
    return open?.order.epoch === epoch ? open : null
  }

  const isCurrent = (open: Open): boolean =>
    sessions.get(open.order.session) === open && !open.retained

  return {
    async open(order, model) {
      expectation = { hiddenSize: model.hiddenSize, maxTokens: PREFILL_CHUNK_TOKENS }
      const former = sessions.get(order.session)
      if (former !== undefined && former.order.epoch >= order.epoch) return
      if (former === undefined) makeRoom()
      const formerSettled = end(former)
      const record = former?.record ?? { cached: 0, sent: createSentRows(budget, model.hiddenSize) }
      const session = createStageSession(
        {
          queue,
          record,
          model,
          sendFrame: (frame) => sendFrame(open, frame),
          tell: deps.tell,
          onStep: deps.onStep,
          now: deps.now,
          later: deps.later,
        },
        order,
      )
      const open: Open = {
        order,
        record,
        parked: false,
        retained: false,
        session,
        next: null,
        formerSettled,
      }
      sessions.set(order.session, open)
      deps.onChange()
      try {
        const link = order.nextPair === null ? null : deps.link(order.nextPair)
        const [next] = await Promise.all([link, formerSettled])
        // A link may come up late: what is cached belongs to a newer epoch by then, or to nobody.
        if (!isCurrent(open)) return
        open.next = next
        deps.tell({ kind: 'session-ready', ...headOf(order), ...rowsLeft(record, order.valid) })
      } catch (thrown) {
        open.session.fail(toCrowdError(thrown, 'link-closed'))
      }
    },
    start(message) {
      const open = find(message.session, message.epoch)
      if (open === null) return
      try {
        open.session.start(message)
      } catch (thrown) {
        open.session.fail(toCrowdError(thrown))
      }
    },
    async close({ session, epoch, retain }) {
      const open = find(session, epoch)
      if (open === null) return
      if (!retain) await drop(session)
      else {
        open.session.close()
        open.retained = true
        deps.onChange()
      }
    },
    onFrame(peer, bytes) {
      const frame = decodeFrame(bytes, expectation)
      const open = find(frame.session, frame.epoch)
      // A closed session's last frames are still on their way: not an error.
      if (open === null) return
      checkSender(open.order, peer)
      open.session.onFrame(frame)
    },
    onLost(pair, reason) {
      for (const open of sessions.values()) {
        if (open.order.nextPair === pair)
          open.session.fail(
            new CrowdError('stage-lost', `the link to the next stage closed: ${reason}`),
          )
      }
    },
    count: () => computed().filter(({ parked }) => !parked).length,
    progress: () => Promise.resolve(progressOf(computed())),
    failAll(error) {
      for (const [session, open] of sessions) {
        open.session.fail(error)
        open.record.sent.cut(0)
        // A step that still runs must not say later that its rows are there; what it caches goes behind it.
        sessions.delete(session)
        void deps.runner.release(session).catch(() => undefined)
      }
      deps.onChange()
    },
    park() {
      for (const [session, open] of sessions) {
        // The host forgets them with the connection.
        if (open.retained) void drop(session)
        else open.parked = true
      }
    },
    async dropParked() {
      const parked = [...sessions].filter(([, open]) => open.parked)
      await Promise.all(parked.map(([session]) => drop(session)))
    },
    async dropAll() {
      await Promise.all([...sessions.keys()].map(drop))
    },
  }
}

function progressOf(open: readonly Open[]): SessionsProgress {
  const all = open.map(({ order, session }) => ({ ...headOf(order), ...session.progress() }))
  return {
    computing: all.some(({ computing }) => computing),
    sessions: all.map(({ session, epoch, position }) => ({ session, epoch, position })),
  }
}

/** Ends an epoch. Resolves when no step of it, nor of one before, runs any more. */
function end(open: Open | undefined): Promise<unknown> {
  open?.session.close()
  return Promise.all([open?.formerSettled, open?.session.settled()])
}

function headOf({ session, epoch }: SessionOrder): Pick<SessionOrder, 'session' | 'epoch'> {
  return { session, epoch }
}

/** Cuts what a session has from earlier epochs to the rows that still hold. */
function rowsLeft(record: SessionRecord, valid: number): StageRows {
  record.cached = Math.min(record.cached, valid)
  record.sent.cut(record.cached)
  return { cached: record.cached, kept: record.sent.length }
}

/** Frames of a session come from the stage before this one only (to the first stage: from the last). */
function checkSender(order: SessionOrder, peer: PeerId): void {
  const before = order.stages[(order.stage + order.stages.length - 1) % order.stages.length]
  if (before?.peer !== peer) {
    throw new CrowdError(
      'bad-frame',
      `a frame of session ${order.session} came from a peer that is not the stage before`,
    )
  }
}
