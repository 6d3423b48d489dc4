import { fromWire, type CrowdError } from '../sdk/core/errors.ts'
import type { PairId } from '../sdk/core/ids.ts'
import type { Signaling, SignalingState } from '../sdk/net/signaling.ts'
import type { ServerMessage } from '../sdk/protocol/server-to-client.ts'
import type { PeerConnection, PeerEntry, PeerHandle } from './peer-connection.ts'
import type { SwarmService } from './swarm-service.ts'

/**
 * The Signaling port without a socket, for a peer in the host's own process. Messages are delivered while
 * `send` runs. `connect` joins, and throws what the service throws (pool-full, signaling-closed).
 */
export function createInProcessSignaling(
  service: Pick<SwarmService, 'join'>,
  entry: PeerEntry,
): Signaling {
  const messageHandlers: ((message: ServerMessage) => void)[] = []
  const stateHandlers: ((state: SignalingState) => void)[] = []
  const relayHandlers: ((pair: PairId, message: Uint8Array) => void)[] = []
  let state: SignalingState = { kind: 'connecting' }
  let handle: PeerHandle | null = null
  /** The host's last word, if it was a no. */
  let refusal: CrowdError | null = null

  function change(next: SignalingState): void {
    if (state.kind === 'closed' || (state.kind === 'refused' && next.kind !== 'closed')) return
    state = next
    for (const handler of stateHandlers) handler(next)
  }

  const connection: PeerConnection = {
    send(message) {
      refusal = message.kind === 'refused' ? fromWire(message.error) : null
      if (message.kind === 'welcome') change({ kind: 'open', welcome: message })
      else if (message.kind !== 'refused' && state.kind === 'open')
        for (const handler of messageHandlers) handler(message)
    },
    sendRelay(pair, bytes) {
      if (state.kind === 'open') for (const handler of relayHandlers) handler(pair, bytes)
    },
    close(reason) {
      change(refusal === null ? { kind: 'lost', reason } : { kind: 'refused', error: refusal })
    },
  }

  return {
    connect() {
      if (handle === null && state.kind === 'connecting') handle = service.join(entry, connection)
    },
    send(message) {
      if (state.kind !== 'open' || handle === null) return false
      handle.receive(message)
      return true
    },
    onMessage(handler) {
      messageHandlers.push(handler)
    },
    onState(handler) {
      stateHandlers.push(handler)
      handler(state)
    },
    relay: {
      send: (pair, message) =>
        state.kind === 'open' && handle !== null && handle.relay(pair, message),
      onMessage(handler) {
        relayHandlers.push(handler)
      },
    },
    close() {
      if (state.kind === 'closed') return
      const wasOpen = state.kind === 'open'
      change({ kind: 'closed' })
      if (wasOpen) handle?.receive({ kind: 'leave' })
    },
  }
}
