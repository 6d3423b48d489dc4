import { expect, test } from 'vitest'
import { describeSignalingContract } from '../test/contracts/signaling.contract.ts'
import { testWelcome } from '../test/support/fake-signaling.ts'
import { fakeSwarm } from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'
import type { PeerId } from '../sdk/core/ids.ts'
import type { ClientMessage } from '../sdk/protocol/client-to-server.ts'
import { createInProcessSignaling } from './in-process-signaling.ts'
import type { PeerConnection } from './peer-connection.ts'

// A name that a test chooses is an id without a parser.
const ENTRY = { peer: 'me' as PeerId, name: 'Me', role: 'asker' } as const

describeSignalingContract('the signaling without a socket', () => {
  const sent: ClientMessage[] = []
  const relayed: Uint8Array[] = []
  let connection: PeerConnection | null = null
  const signaling = createInProcessSignaling(
    {
      join(entry, made) {
        connection = made
        return {
          peer: entry.peer,
          receive(message) {
            if (message.kind !== 'leave') sent.push(message)
          },
          relay: (_pair, bytes) => relayed.push(bytes) > 0,
          closed: () => undefined,
        }
      },
    },
    ENTRY,
  )
  return Promise.resolve({
    signaling,
    sent: () => sent,
    relayed: () => relayed,
    welcome: () => connection?.send(testWelcome()),
    say: (message) => connection?.send(message),
    relay: (pair, bytes) => connection?.sendRelay(pair, bytes),
    lose: () => connection?.close('cable'),
    refuse(error) {
      connection?.send({ kind: 'refused', error: error.toWire() })
      connection?.close(error.message)
    },
    close: () => Promise.resolve(),
  })
})

test('it takes a seat, and gives it back once', () => {
  const { service } = fakeSwarm(modelOf(), 2)
  const signaling = createInProcessSignaling(service, ENTRY)
  expect(service.state().peers.size).toBe(0)
  signaling.connect()
  signaling.connect()
  expect([...service.state().peers.keys()]).toEqual(['me'])
  signaling.close()
  signaling.close()
  expect(service.state().peers.size).toBe(0)
})

test('a host that is stopping says so', () => {
  const { service } = fakeSwarm(modelOf(), 2)
  service.close()
  expect(() => createInProcessSignaling(service, ENTRY).connect()).toThrow('stopping')
})
