import { expect, test } from 'vitest'
import { describeChannelContract } from '../../test/contracts/channel.contract.ts'
import { createSignalingHub, testOrder } from '../../test/support/signaling-hub.ts'
import { CHUNK_BYTES } from '../core/limits.ts'
import { createRelayLink, readEnvelope, type RelayLink } from './relay-link.ts'
import type { HubEnd } from '../../test/support/signaling-hub.ts'

function relayEnd(hub: HubEnd, attempt = 1): RelayLink {
  const link = createRelayLink({
    order: testOrder(true, attempt),
    send: hub.signaling.relay.send,
    onClosed: () => undefined,
  })
  hub.signaling.relay.onMessage((_pair, bytes) => {
    const envelope = readEnvelope(bytes)
    if (envelope?.attempt === attempt) link.receive(envelope.lane, bytes)
  })
  return link
}

describeChannelContract('relay', 'relay', () => {
  const hub = createSignalingHub(testOrder(true).pair)
  const a = relayEnd(hub.a)
  const b = relayEnd(hub.b)
  const close = () => {
    a.lost('test over')
    b.lost('test over')
  }
  return Promise.resolve({ a, b, close })
})

test('RL1 puts lane and attempt before each message, and stays within a chunk', () => {
  const sent: Uint8Array[] = []
  const link = createRelayLink({
    order: testOrder(true, 0x01020304),
    send: (_pair, message) => sent.push(message) > 0,
    onClosed: () => undefined,
  })
  link.send('bulk', new Uint8Array([9, 8]))
  expect([...sent[0]!]).toEqual([1, 0, 0, 0, 4, 3, 2, 1, 9, 8])
  expect(readEnvelope(sent[0]!)).toEqual({ lane: 'bulk', attempt: 0x01020304 })
  link.send('control', new Uint8Array(CHUNK_BYTES - 8))
  expect(sent[1]!.length).toBe(CHUNK_BYTES)
  expect(() => link.send('bulk', new Uint8Array(CHUNK_BYTES - 7))).toThrow(/relay message/)
})

test('RL1 reads no envelope where there is none', () => {
  expect(readEnvelope(new Uint8Array(7))).toBeNull()
  expect(readEnvelope(new Uint8Array([2, 0, 0, 0, 1, 0, 0, 0]))).toBeNull()
})
