import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import type { Connector } from '../../sdk/net/channel.ts'
import type { Signaling, SignalingState } from '../../sdk/net/signaling.ts'
import type { ClientMessageOf } from '../../sdk/protocol/client-to-server.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import { createFakeSignaling, type FakeSignaling } from './fake-signaling.ts'

/** One peer's side of the stand-in for the host: forwards signals and relayed bytes of one pair. */
export type HubEnd = {
  readonly signaling: Signaling
  /** Where this end's incoming signals go. */
  attach(connector: Connector): void
  setState(state: SignalingState): void
  /** What the host itself says to this end. */
  deliver(message: ServerMessage): void
  readonly relayedBytes: number
  /** Signals sent by this end. */
  readonly signals: readonly ClientMessageOf<'signal'>[]
}

/** Both ends of a pair with a host in between, in one process, open from the start. Everything arrives in a later microtask. */
export function createSignalingHub(pair: PairId): { a: HubEnd; b: HubEnd } {
  const a: Side = sideOf(pair, () => b)
  const b: Side = sideOf(pair, () => a)
  for (const { fake } of [a, b]) fake.open()
  return { a: hubEnd(a.fake), b: hubEnd(b.fake) }
}

type Side = { readonly fake: FakeSignaling; isUp(): boolean }

function sideOf(pair: PairId, other: () => Side): Side {
  let state: SignalingState['kind'] = 'connecting'
  const isUp = () => state === 'open'
  // The host passes on to who is connected, both when it comes in and when it goes out.
  const passOn = (task: (to: FakeSignaling) => void) => {
    const to = other()
    if (!to.isUp()) return
    queueMicrotask(() => {
      if (isUp()) task(to.fake)
    })
  }
  const fake = createFakeSignaling({
    onSend(message) {
      if (message.kind !== 'signal') return
      const data: unknown = JSON.parse(JSON.stringify(message.data))
      passOn((to) => to.deliver({ ...message, pair, data }))
    },
    onRelay(_pair, message) {
      const bytes = message.slice()
      passOn((to) => to.deliverRelayed(pair, bytes))
    },
  })
  fake.onState(({ kind }) => {
    state = kind
  })
  return { fake, isUp }
}

function hubEnd(fake: FakeSignaling): HubEnd {
  return {
    signaling: fake,
    attach(connector) {
      fake.onMessage((message) => {
        if (message.kind === 'signal') {
          connector.accept(message.pair, message.attempt, message.data)
        }
      })
    },
    setState: fake.setState,
    deliver: fake.deliver,
    get relayedBytes() {
      return fake.relayed.reduce((sum, bytes) => sum + bytes.length, 0)
    },
    get signals() {
      return fake.sent.filter((message) => message.kind === 'signal')
    },
  }
}

export function testOrder(initiator: boolean, attempt = 1) {
  // Names that a test chooses are ids without a parser.
  const peer = (initiator ? 'peer-b' : 'peer-a') as PeerId
  return { pair: 'pair-1' as PairId, peer, initiator, attempt, iceServers: [] }
}
