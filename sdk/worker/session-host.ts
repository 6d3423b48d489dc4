import { fromWire, toCrowdError } from '../core/errors.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import type { MessageEnd } from '../core/message-end.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import type { SessionCommand, SessionNews } from './session-messages.ts'
import { createSessions, type FrameSink } from './sessions.ts'

export type SessionHost = {
  /** A frame that came on a lane of this thread. @throws CrowdError bad-frame, non-finite */
  onFrame(peer: PeerId, bytes: Uint8Array): void
}

export type SessionHostDeps = {
  readonly end: MessageEnd<SessionNews, SessionCommand>
  readonly runner: Pick<StageRunner, 'run' | 'release'>
  /** Sends a frame on a lane of this thread. */
  readonly sendOnLane: (lane: number, frame: Uint8Array) => Promise<void>
  readonly now: () => number
  /** Runs `task` after `ms` unless the returned function was called. */
  readonly later: (ms: number, task: () => void) => () => void
}

/** Runs a worker's sessions beside its runner; the page gives orders and hears what the host must know. */
export function createSessionHost(deps: SessionHostDeps): SessionHost {
  const { end } = deps
  const links = new Map<PairId, Deferred<FrameSink>>()
  /** Frames on their way through the page. */
  const passing = new Map<number, Deferred<undefined>>()
  let lastFrame = 0

  const sessions = createSessions({
    runner: deps.runner,
    link(pair) {
      const wanted = links.get(pair) ?? createDeferred<FrameSink>()
      links.set(pair, wanted)
      end.post({ kind: 'want-link', pair })
      return wanted.promise
    },
    tell: (message) => end.post({ kind: 'tell', message }),
    onStep(tokens, computeMs) {
      // After the frame, which the next stage waits for.
      queueMicrotask(() => end.post({ kind: 'step', tokens, computeMs }))
    },
    onChange: () => undefined,
    now: deps.now,
    later: deps.later,
  })

  function throughPage(pair: PairId, bytes: Uint8Array): Promise<undefined> {
    const frame = (lastFrame += 1)
    const sent = createDeferred<undefined>()
    passing.set(frame, sent)
    end.post({ kind: 'frame', pair, frame, bytes }, [bytes.buffer])
    return sent.promise
  }

  function takeLink(pair: PairId): Deferred<FrameSink> | undefined {
    const wanted = links.get(pair)
    links.delete(pair)
    return wanted
  }

  function fromPage(peer: PeerId, bytes: Uint8Array): void {
    try {
      sessions.onFrame(peer, bytes)
    } catch (thrown) {
      end.post({ kind: 'bad-frame', peer, error: toCrowdError(thrown).toWire() })
    }
  }

  end.listen((command) => {
    switch (command.kind) {
      case 'open':
        void sessions.open(command.order, command.model)
        return
      case 'start':
        sessions.start(command.message)
        return
      case 'close':
        void sessions.close(command.message)
        return
      case 'frame':
        fromPage(command.peer, command.bytes)
        return
      case 'link': {
        const { pair, lane } = command
        takeLink(pair)?.resolve({
          lane,
          send: (frame) =>
            lane === null ? throughPage(pair, frame) : deps.sendOnLane(lane, frame),
        })
        return
      }
      case 'no-link':
        takeLink(command.pair)?.reject(fromWire(command.error))
        return
      case 'sent': {
        const sent = passing.get(command.frame)
        passing.delete(command.frame)
        if (command.error === null) sent?.resolve(undefined)
        else sent?.reject(fromWire(command.error))
        return
      }
      case 'link-lost':
        sessions.onLost(command.pair, command.reason)
        return
      case 'fail-all':
        sessions.failAll(fromWire(command.error))
        return
      case 'want-progress':
        void sessions.progress().then((progress) => end.post({ kind: 'progress', progress }))
        return
      case 'drop-all':
        void sessions.dropAll().then(() => end.post({ kind: 'dropped' }))
    }
  })

  return { onFrame: sessions.onFrame }
}
