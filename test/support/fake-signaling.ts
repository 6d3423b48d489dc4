import type { Signaling, SignalingState } from '../../sdk/net/signaling.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'

/** A Signaling whose other end is the test: what was sent is in `sent`, and the test says what arrives. */
export type FakeSignaling = Signaling & {
  readonly sent: ClientMessage[]
  deliver(message: ServerMessage): void
  setState(state: SignalingState): void
  /** While false, send() refuses as a lost connection does. */
  up: boolean
}

export function createFakeSignaling(): FakeSignaling {
  const messageHandlers: ((message: ServerMessage) => void)[] = []
  const stateHandlers: ((state: SignalingState) => void)[] = []
  let state: SignalingState = { kind: 'connecting' }
  const fake: FakeSignaling = {
    sent: [],
    up: true,
    connect() {},
    send(message) {
      if (!fake.up) return false
      fake.sent.push(message)
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
      for (const handler of messageHandlers) handler(message)
    },
    setState(next) {
      state = next
      for (const handler of stateHandlers) handler(next)
    },
    relay: {
      send: () => fake.up,
      onMessage() {},
    },
    close() {
      fake.setState({ kind: 'closed' })
    },
  }
  return fake
}
