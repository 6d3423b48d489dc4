import type { WireError } from '../core/errors.ts'
import type { PeerId } from '../core/ids.ts'

/** To the thread that serves bulk lanes. `lane` counts from 1 and is never used again. */
export type LaneOrder = { readonly lane: number } & (
  | {
      readonly kind: 'adopt'
      readonly peer: PeerId
      readonly creditBytes: number
      /** Transferred, so it must not be open yet. */
      readonly channel: RTCDataChannel
    }
  /** A message of the handshake goes out. */
  | { readonly kind: 'say'; readonly bytes: Uint8Array }
  | { readonly kind: 'announced'; readonly windowBytes: number }
  | { readonly kind: 'open' }
  | { readonly kind: 'granted'; readonly consumed: number }
  | { readonly kind: 'close'; readonly error: WireError }
)

/** From the thread that serves bulk lanes. */
export type LaneNews = { readonly lane: number } & (
  | { readonly kind: 'opened' }
  /** A message came that is no chunk. */
  | { readonly kind: 'said'; readonly bytes: Uint8Array }
  /** So many bytes were consumed in all. */
  | { readonly kind: 'grant'; readonly consumed: number }
  | { readonly kind: 'broken'; readonly error: WireError }
  | { readonly kind: 'closed' }
  | {
      readonly kind: 'stats'
      readonly sentBytes: number
      readonly receivedBytes: number
      /** How long data waited for its next step when this was sent; null when none waits. */
      readonly stuckMs: number | null
    }
)
