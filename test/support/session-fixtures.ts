import type { PairId, PeerId, SessionId } from '../../sdk/core/ids.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { encodeFrame, type ActivationFrame } from '../../sdk/core/wire/frame.ts'
import type { ServerMessageOf } from '../../sdk/protocol/server-to-client.ts'
import type { SessionModel, SessionOrder } from '../../sdk/worker/stage-session.ts'

// Names that a test chooses are ids without a parser.
export const [FIRST, MIDDLE, LAST] = ['first', 'middle', 'last'] as PeerId[] as [
  PeerId,
  PeerId,
  PeerId,
]
export const PAIR = 'pair' as PairId

/** What a session reads of a manifest. */
export const SESSION_MODEL: SessionModel = { hiddenSize: 4, eosTokenIds: [9], contextLength: 20 }

/** The middle stage of three, session 7, epoch 1. */
export function sessionOrder(change: Partial<SessionOrder> = {}): SessionOrder {
  return {
    kind: 'session-open',
    session: 7 as SessionId,
    epoch: 1,
    stage: 1,
    stages: [FIRST, MIDDLE, LAST].map((peer, index) => ({
      peer,
      range: { start: index, end: index + 1 },
    })),
    nextPair: PAIR,
    sampling: GREEDY,
    history: [],
    promptLength: 1,
    answered: 0,
    valid: 0,
    maxTokens: 10,
    stopIds: [],
    ...change,
  }
}

/** Begins it at the first position. */
export function sessionStart(
  change: Partial<ServerMessageOf<'session-start'>> = {},
): ServerMessageOf<'session-start'> {
  return {
    kind: 'session-start',
    session: 7 as SessionId,
    epoch: 1,
    from: 0,
    forward: 0,
    prompt: [],
    ...change,
  }
}

/** One row of zeros for that session. */
export function activationBytes(change: Partial<ActivationFrame> = {}): Uint8Array<ArrayBuffer> {
  const hiddenSize = change.hiddenSize ?? SESSION_MODEL.hiddenSize
  return encodeFrame({
    kind: 'activation',
    session: 7 as SessionId,
    epoch: 1,
    step: 0,
    position: 0,
    tokenCount: 1,
    hiddenSize,
    sample: true,
    data: new Float32Array(hiddenSize),
    computeMicros: 0,
    ...change,
  })
}
