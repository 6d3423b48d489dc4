import type { WireError } from '../core/errors.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import type { SessionsProgress } from './sessions.ts'
import type { SessionModel, SessionOrder } from './stage-session.ts'

/** To the thread in which the sessions run. */
export type SessionCommand =
  | { readonly kind: 'open'; readonly order: SessionOrder; readonly model: SessionModel }
  | { readonly kind: 'start'; readonly message: ServerMessageOf<'session-start'> }
  | { readonly kind: 'close'; readonly message: ServerMessageOf<'session-close'> }
  /** A frame of a link that passes the page: a relayed one, or where data channels can't go to a thread. */
  | { readonly kind: 'frame'; readonly peer: PeerId; readonly bytes: Uint8Array }
  /** The answer to `want-link`: the lane in the thread, or null where frames go through the page. */
  | { readonly kind: 'link'; readonly pair: PairId; readonly lane: number | null }
  | { readonly kind: 'no-link'; readonly pair: PairId; readonly error: WireError }
  /** What became of a frame that went through the page. */
  | { readonly kind: 'sent'; readonly frame: number; readonly error: WireError | null }
  | { readonly kind: 'link-lost'; readonly pair: PairId; readonly reason: string }
  | { readonly kind: 'fail-all'; readonly error: WireError }
  | { readonly kind: 'drop-all' }
  | { readonly kind: 'want-progress' }

/** From the thread in which the sessions run. */
export type SessionNews =
  | { readonly kind: 'tell'; readonly message: ClientMessage }
  | { readonly kind: 'step'; readonly tokens: number; readonly computeMs: number }
  | { readonly kind: 'want-link'; readonly pair: PairId }
  | {
      readonly kind: 'frame'
      readonly pair: PairId
      readonly frame: number
      readonly bytes: Uint8Array
    }
  /** The peer broke the rules with a frame that came through the page. */
  | { readonly kind: 'bad-frame'; readonly peer: PeerId; readonly error: WireError }
  | { readonly kind: 'progress'; readonly progress: SessionsProgress }
  /** All sessions are forgotten and their caches free. */
  | { readonly kind: 'dropped' }
