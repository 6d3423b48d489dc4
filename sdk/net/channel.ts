import type { PairId, PeerId } from '../core/ids.ts'
import type { DistantLane } from './distant-lanes.ts'

/** How two peers reach each other. `local` = both ends in one process. */
export type ChannelPath = 'direct' | 'turn' | 'relay' | 'local'

export type ChannelStats = {
  /** Round trip of the last heartbeats, ms (smoothed); null before the first. */
  readonly rttMs: number | null
  readonly sentBytes: number
  readonly receivedBytes: number
}

/**
 * PORT below the channel: reliable, ordered messages of at most CHUNK_BYTES on two lanes. Control overtakes
 * bulk. Three implementations: WebRTC, relay through the host, memory.
 */
export interface Link {
  readonly path: ChannelPath
  /** The bulk lane where another thread serves it; then only its handshake passes through send() and onMessage(). */
  readonly distant?: DistantLane
  /** Hands one message to the transport. @throws CrowdError link-closed */
  send(lane: Lane, message: Uint8Array): void
  /** Bytes accepted by send() and not yet on the wire; 0 where the transport doesn't tell. */
  bufferedBytes(lane: Lane): number
  /** Called when bufferedBytes fell to the low mark; transports that don't tell never call it. */
  onDrain(handler: () => void): void
  onMessage(handler: (lane: Lane, message: Uint8Array) => void): void
  /** Called once. */
  onClose(handler: (reason: string) => void): void
  close(reason: string): void
}

export type Lane = 'control' | 'bulk'

/**
 * PORT. Whole frames between two peers, in order, with end-to-end credits, water marks and a heartbeat.
 * The same code runs over every Link, so a channel behaves the same on each path.
 */
export interface Channel {
  readonly pair: PairId
  readonly peer: PeerId
  readonly path: ChannelPath
  /** The lane in the compute thread that carries the frames; null where they pass here. */
  readonly lane: number | null
  /**
   * Sends one frame; resolves when it was handed to the transport within the credit window.
   * Control-lane frames (tokens) overtake queued bulk. @throws CrowdError link-closed, timeout, bad-frame (too large)
   */
  send(frame: Uint8Array, lane: Lane): Promise<void>
  /** One listener; frames that come before it wait. What it throws closes the link with that reason. */
  onFrame(handler: (frame: Uint8Array) => void): void
  /**
   * Any number of listeners, each called once: `silence: …`, `bye: …` (what the other end said), `bad-frame: …` or
   * another error code, `transport: …`, or what close() was given here.
   */
  onClose(handler: (reason: string) => void): void
  stats(): ChannelStats
  /** Says bye and closes. Idempotent. */
  close(reason: string): void
}

/** What the server says about a pair: who is on the other end and who begins. */
export type PairOrder = {
  readonly pair: PairId
  readonly peer: PeerId
  readonly initiator: boolean
  /** Raised for every new try; signals of older attempts are ignored. */
  readonly attempt: number
  /** `pieces`: only for bytes of weights, from the other end to the initiator, and never through the host. */
  readonly purpose?: 'ring' | 'pieces' | undefined
  readonly iceServers: readonly {
    readonly urls: string
    readonly username?: string | undefined
    readonly credential?: string | undefined
  }[]
}

/**
 * PORT. Makes a channel for a pair by the ladder direct -> TURN -> relay, which always ends in a channel
 * while the signaling is up. @throws CrowdError timeout, signaling-closed, aborted
 */
export interface Connector {
  connect(order: PairOrder, signal: AbortSignal): Promise<Channel>
  /** A signal from the other end of a pair, as it came from signaling. */
  accept(pair: PairId, attempt: number, data: unknown): void
  close(): void
}
