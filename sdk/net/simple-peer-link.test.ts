import { expect, test } from 'vitest'
import type { PairId, PeerId } from '../core/ids.ts'
import type { PairOrder } from './channel.ts'
import { createSimplePeerLinks, type SimplePeerInstance } from './simple-peer-link.ts'

/** Nothing of WebRTC but what beginning a try touches. */
function fakePeer(): SimplePeerInstance {
  const peer = {
    _pc: { createDataChannel: () => ({ readyState: 'connecting' }) },
    bufferSize: 0,
    destroyed: false,
    signal: () => undefined,
    send: () => undefined,
    destroy: () => {
      peer.destroyed = true
    },
    on: () => undefined,
  }
  return peer as unknown as SimplePeerInstance
}

test.each<[PairOrder['purpose'], number]>([
  ['ring', 1],
  [undefined, 1],
  ['pieces', 0],
])('the compute thread is offered the frames of a link for %s: %i', (purpose, offers) => {
  let offered = 0
  const make = createSimplePeerLinks({
    createPeer: fakePeer,
    lanes: {
      adopt() {
        offered += 1
        return null
      },
    },
  })
  const order: PairOrder = {
    // Names that a test chooses are ids without a parser.
    pair: 'pair-1' as PairId,
    peer: 'other' as PeerId,
    initiator: true,
    attempt: 1,
    iceServers: [],
    purpose,
  }
  make({ order, onSignal: () => undefined }).close()
  expect(offered).toBe(offers)
})
