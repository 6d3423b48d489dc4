import type { CrowdError } from '../core/errors.ts'
import type { PairId } from '../core/ids.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { ServerMessage } from '../protocol/server-to-client.ts'

export type SignalingState =
  | { readonly kind: 'connecting' }
  /** The hello was accepted; carries the server's welcome. */
  | { readonly kind: 'open'; readonly welcome: Extract<ServerMessage, { kind: 'welcome' }> }
  /** Lost; retried by itself with growing pauses. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** The server said no (wrong secret, old protocol, pool full); not retried. */
  | { readonly kind: 'refused'; readonly error: CrowdError }
  | { readonly kind: 'closed' }

/**
 * PORT. The control plane of one peer. Says hello on every (re)connect and keeps the peer's identity; every
 * incoming message was parsed. Nothing is buffered while lost: send() then returns false, and roles
 * re-announce their state when it is open again.
 */
export interface Signaling {
  connect(): void
  send(message: ClientMessage): boolean
  onMessage(handler: (message: ServerMessage) => void): void
  /** Called at once with the present state and on every change. */
  onState(handler: (state: SignalingState) => void): void
  /** The last rung of the ladder: opaque chunks to the other end of a pair. */
  readonly relay: {
    send(pair: PairId, message: Uint8Array): boolean
    onMessage(handler: (pair: PairId, message: Uint8Array) => void): void
  }
  close(): void
}
