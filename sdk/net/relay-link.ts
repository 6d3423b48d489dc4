import { CrowdError } from '../core/errors.ts'
import { ENVELOPE_BYTES, LINK_MESSAGE_MAX_BYTES } from '../core/wire/chunker.ts'
import type { PairOrder, Lane, Link } from './channel.ts'
import { createLinkEvents } from './link-events.ts'
import type { Signaling } from './signaling.ts'

/**
 * Envelope of a message that goes through the host, 8 bytes, little endian: lane u8 (0 control, 1 bulk), three zero
 * bytes, attempt u32. The host looks at neither: it forwards by pair.
 */
export type RelayEnvelope = { readonly lane: Lane; readonly attempt: number }

/** Reads the envelope; null when it is none. */
export function readEnvelope(bytes: Uint8Array): RelayEnvelope | null {
  const code = bytes[0]
  if (bytes.length < ENVELOPE_BYTES || (code !== 0 && code !== 1)) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return { lane: code === 0 ? 'control' : 'bulk', attempt: view.getUint32(4, true) }
}

export type RelayLink = Link & {
  /** A message that came through the host for this pair and attempt, envelope included. */
  receive(lane: Lane, bytes: Uint8Array): void
  /** The host can't be reached any more. */
  lost(reason: string): void
}

export type RelayLinkDeps = {
  readonly order: Pick<PairOrder, 'pair' | 'attempt'>
  readonly send: Signaling['relay']['send']
  /** Called once the link is closed, from whichever side. */
  readonly onClosed: () => void
}

/**
 * The last rung of the ladder: a link through the host. Open from the start; the channel's handshake finds out
 * whether the other end listens. Its flow is bounded by the channel's credits, since a socket doesn't tell
 * how much it holds back.
 */
export function createRelayLink(deps: RelayLinkDeps): RelayLink {
  const { order } = deps
  const events = createLinkEvents()

  function end(reason: string): void {
    if (events.closed) return
    events.close(reason)
    deps.onClosed()
  }

  return {
    path: 'relay',
    send(lane, message) {
      if (events.closed) throw new CrowdError('link-closed', 'the link is closed')
      if (message.length > LINK_MESSAGE_MAX_BYTES) {
        throw new CrowdError('bad-frame', `relay message of ${message.length} bytes`)
      }
      const bytes = new Uint8Array(ENVELOPE_BYTES + message.length)
      bytes[0] = lane === 'control' ? 0 : 1
      new DataView(bytes.buffer).setUint32(4, order.attempt, true)
      bytes.set(message, ENVELOPE_BYTES)
      if (!deps.send(order.pair, bytes)) {
        throw new CrowdError('link-closed', 'the connection to the host is lost')
      }
    },
    bufferedBytes: () => 0,
    onDrain: events.onDrain,
    onMessage: events.onMessage,
    onClose: events.onClose,
    close: end,
    receive: (lane, bytes) => events.message(lane, bytes.subarray(ENVELOPE_BYTES)),
    lost: (reason) => end(`transport: ${reason}`),
  }
}
