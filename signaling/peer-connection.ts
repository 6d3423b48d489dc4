import type { PairId, PeerId } from '../sdk/core/ids.ts'
import type { PeerRole } from '../sdk/core/swarm/state.ts'
import type { ClientMessage } from '../sdk/protocol/client-to-server.ts'
import type { ServerMessage } from '../sdk/protocol/server-to-client.ts'

/** The way to one peer: a socket, or a caller in this process. Sends after its end are ignored. */
export interface PeerConnection {
  send(message: ServerMessage): void
  /** Opaque bytes from the other end of a pair. */
  sendRelay(pair: PairId, bytes: Uint8Array): void
  /** Ends the connection; the peer's handle is told nothing more. */
  close(reason: string): void
}

/** What a connection does for its peer. The peer behind it was admitted; nothing is stamped by the sender. */
export interface PeerHandle {
  readonly peer: PeerId
  /** @throws CrowdError bad-message, when the peer broke a rule that its own state shows */
  receive(message: ClientMessage): void
  /** Bytes for the other end of a pair; false when there is no such pair or nobody at its end. */
  relay(pair: PairId, bytes: Uint8Array): boolean
  /** The connection is gone. Idempotent. */
  closed(): void
}

export type PeerEntry = {
  readonly peer: PeerId
  readonly name: string
  readonly role: PeerRole
  /** Its build fetches pieces from peers and gives them; no when absent. */
  readonly sharesPieces?: boolean
}
