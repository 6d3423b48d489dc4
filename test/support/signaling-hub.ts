import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import type { Connector } from '../../sdk/net/channel.ts'
import type { Signaling, SignalingState } from '../../sdk/net/signaling.ts'

/** One peer's side of the stand-in for the host: forwards signals and relayed bytes of one pair. */
export type HubEnd = {
  readonly signaling: Pick<Signaling, 'send' | 'relay' | 'onState'>
  /** Where this end's incoming signals go. */
  attach(connector: Connector): void
  setState(state: SignalingState): void
  readonly relayedBytes: number
  /** Signals sent by this end. */
  readonly signals: { readonly attempt: number; readonly data: unknown }[]
}

/** Both ends of a pair with a host in between, in one process. Everything arrives in a later microtask. */
export function createSignalingHub(pair: PairId): { a: HubEnd; b: HubEnd } {
  const ends: [End, End] = [newEnd(), newEnd()]
  return { a: hubEnd(pair, ends[0], ends[1]), b: hubEnd(pair, ends[1], ends[0]) }
}

type End = {
  connectors: Connector[]
  relayHandlers: ((pair: PairId, message: Uint8Array) => void)[]
  stateHandlers: ((state: SignalingState) => void)[]
  up: boolean
  relayedBytes: number
  signals: { attempt: number; data: unknown }[]
}

function newEnd(): End {
  return {
    connectors: [],
    relayHandlers: [],
    stateHandlers: [],
    up: true,
    relayedBytes: 0,
    signals: [],
  }
}

function hubEnd(pair: PairId, own: End, other: End): HubEnd {
  const reaches = () => own.up && other.up
  return {
    signaling: {
      send(message) {
        if (!own.up) return false
        if (message.kind !== 'signal') return true
        const { attempt } = message
        own.signals.push({ attempt, data: message.data })
        const data: unknown = JSON.parse(JSON.stringify(message.data))
        queueMicrotask(() => {
          if (!reaches()) return
          for (const connector of other.connectors) connector.accept(pair, attempt, data)
        })
        return true
      },
      onState: (handler) => void own.stateHandlers.push(handler),
      relay: {
        send(_pair, message) {
          if (!own.up) return false
          own.relayedBytes += message.length
          const bytes = message.slice()
          queueMicrotask(() => {
            if (!reaches()) return
            for (const handler of other.relayHandlers) handler(pair, bytes)
          })
          return true
        },
        onMessage: (handler) => void own.relayHandlers.push(handler),
      },
    },
    attach: (connector) => void own.connectors.push(connector),
    setState(state) {
      own.up = state.kind === 'open'
      for (const handler of own.stateHandlers) handler(state)
    },
    get relayedBytes() {
      return own.relayedBytes
    },
    signals: own.signals,
  }
}

export function testOrder(initiator: boolean, attempt = 1) {
  // Names that a test chooses are ids without a parser.
  const peer = (initiator ? 'peer-b' : 'peer-a') as PeerId
  return { pair: 'pair-1' as PairId, peer, initiator, attempt, iceServers: [] }
}
