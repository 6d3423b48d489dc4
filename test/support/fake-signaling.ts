import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import type { Signaling, SignalingState } from '../../sdk/net/signaling.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import type { ServerMessage, ServerMessageOf } from '../../sdk/protocol/server-to-client.ts'
import { FEATURES, PROTOCOL } from '../../sdk/protocol/version.ts'

/** A Signaling whose other end is the test: what was sent is in `sent`, and the test says what arrives. */
export type FakeSignaling = Signaling & {
  readonly sent: ClientMessage[]
  readonly relayed: Uint8Array[]
  /** A message of the host; dropped where the port delivers none. */
  deliver(message: ServerMessage): void
  deliverRelayed(pair: PairId, bytes: Uint8Array): void
  /** The host accepts the hello. */
  open(): void
  setState(state: SignalingState): void
}

export type FakeSignalingOptions = {
  /** Called with what was sent, besides keeping it. */
  readonly onSend?: (message: ClientMessage) => void
  readonly onRelay?: (pair: PairId, bytes: Uint8Array) => void
}

export function createFakeSignaling(options: FakeSignalingOptions = {}): FakeSignaling {
  const messageHandlers: ((message: ServerMessage) => void)[] = []
  const stateHandlers: ((state: SignalingState) => void)[] = []
  const relayHandlers: ((pair: PairId, bytes: Uint8Array) => void)[] = []
  let state: SignalingState = { kind: 'connecting' }
  const fake: FakeSignaling = {
    sent: [],
    relayed: [],
    connect() {},
    send(message) {
      if (state.kind !== 'open') return false
      fake.sent.push(message)
      options.onSend?.(message)
      return true
    },
    onMessage(handler) {
      messageHandlers.push(handler)
    },
    onState(handler) {
      stateHandlers.push(handler)
      handler(state)
    },
    deliver(message) {
      if (state.kind === 'open') for (const handler of messageHandlers) handler(message)
    },
    deliverRelayed(pair, bytes) {
      if (state.kind === 'open') for (const handler of relayHandlers) handler(pair, bytes)
    },
    open: () => fake.setState({ kind: 'open', welcome: testWelcome() }),
    setState(next) {
      if (state.kind === 'closed' || (state.kind === 'refused' && next.kind !== 'closed')) return
      state = next
      for (const handler of stateHandlers) handler(next)
    },
    relay: {
      send(pair, bytes) {
        if (state.kind !== 'open') return false
        fake.relayed.push(bytes)
        options.onRelay?.(pair, bytes)
        return true
      },
      onMessage(handler) {
        relayHandlers.push(handler)
      },
    },
    close() {
      fake.setState({ kind: 'closed' })
    },
  }
  return fake
}

/** The welcome of a host of this build. */
export function testWelcome(
  over: Partial<ServerMessageOf<'welcome'>> = {},
): ServerMessageOf<'welcome'> {
  return {
    kind: 'welcome',
    protocol: PROTOCOL,
    features: [...FEATURES],
    // Names that a test chooses are ids without a parser.
    peer: 'me' as PeerId,
    name: 'Me',
    model: 'model' as ServerMessageOf<'welcome'>['model'],
    revision: 'r1',
    manifestPath: '/models/model/manifest.json',
    ...over,
  }
}
