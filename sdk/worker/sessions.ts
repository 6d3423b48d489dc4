import { CrowdError, toCrowdError, type WireError } from '../core/errors.ts'
import type { PairId, PeerId, SessionId } from '../core/ids.ts'
import { PREFILL_CHUNK_TOKENS } from '../core/limits.ts'
import { decodeFrame, encodeFrame, type Frame, type FrameExpectation } from '../core/wire/frame.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
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
}

/** Makes the sessions of a worker, here or in another thread. */
export type MakeSessions = (
  deps: SessionsDeps & {
    /** Sessions in another thread can't throw: this peer's frame broke the rules, its link must close. */
    onBadFrame(peer: PeerId, error: WireError): void
  },
) => Sessions

/** Where frames for the next stage go. */
export type FrameSink = {
  /** The lane in the compute thread, where there is one. */
  readonly lane: number | null
  /** Resolves when the frame was handed to the link. @throws CrowdError link-closed */
  send(frame: Uint8Array): Promise<void>
}

type Open = { readonly order: SessionOrder; readonly session: StageSession; next: FrameSink | null }

/** The sessions of one worker, keyed by session and epoch; frames find theirs by the header. */
export type Sessions = {
  open(order: SessionOrder, model: SessionModel): Promise<void>
  start(message: ServerMessageOf<'session-start'>): void
  close(message: ServerMessageOf<'session-close'>): Promise<void>
  /** @throws CrowdError bad-frame, non-finite: the link that brought it must close */
  onFrame(peer: PeerId, bytes: Uint8Array): void
  /** A link is gone: the sessions that used it fail. */
  onLost(pair: PairId, reason: string): void
  count(): number
  /** Fails every session, e.g. before another stage is loaded. */
  failAll(error: CrowdError): void
  /** Forgets every session and frees its caches: the host has ended them. */
  dropAll(): Promise<void>
}

export function createSessions(deps: SessionsDeps): Sessions {
  const sessions = new Map<SessionId, Open>()
  /** What a frame may look like; a device holds one model at a time. */
  let expectation: FrameExpectation | undefined

  async function drop(session: SessionId): Promise<void> {
    const open = sessions.get(session)
    if (open === undefined) return
    sessions.delete(session)
    open.session.close()
    deps.onChange()
    // A runner that was lost meanwhile has no caches any more.
    await deps.runner.release(session).catch(() => undefined)
  }

  async function sendFrame(open: Open, frame: Frame): Promise<void> {
    if (open.next === null) throw new CrowdError('link-closed', 'no link to the next stage')
    await open.next.send(encodeFrame(frame))
  }

  function find(session: SessionId, epoch: number): Open | null {
    const open = sessions.get(session)
    return open?.order.epoch === epoch ? open : null
  }

  return {
    async open(order, model) {
      expectation = { hiddenSize: model.hiddenSize, maxTokens: PREFILL_CHUNK_TOKENS }
      const former = sessions.get(order.session)
      if (former !== undefined && former.order.epoch >= order.epoch) return
      if (former !== undefined) await drop(order.session)
      const open: Open = {
        order,
        session: createStageSession(
          {
            runner: deps.runner,
            model,
            sendFrame: (frame) => sendFrame(open, frame),
            tell: deps.tell,
            onStep: deps.onStep,
            now: deps.now,
          },
          order,
        ),
        next: null,
      }
      sessions.set(order.session, open)
      deps.onChange()
      try {
        if (order.nextPair !== null) open.next = await deps.link(order.nextPair)
        deps.tell({ kind: 'session-ready', session: order.session, epoch: order.epoch })
      } catch (thrown) {
        open.session.fail(toCrowdError(thrown, 'link-closed'))
      }
    },
    start({ session, epoch, prompt }) {
      const open = find(session, epoch)
      if (open === null) return
      try {
        open.session.start(prompt)
      } catch (thrown) {
        open.session.fail(toCrowdError(thrown))
      }
    },
    async close({ session, epoch }) {
      if (find(session, epoch) !== null) await drop(session)
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
    count: () => sessions.size,
    failAll(error) {
      for (const open of sessions.values()) open.session.fail(error)
    },
    async dropAll() {
      await Promise.all([...sessions.keys()].map(drop))
    },
  }
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
