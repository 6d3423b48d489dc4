import { io, type Socket } from 'socket.io-client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import { createSignaling, type SignalingClient } from '../../sdk/net/signaling-client.ts'
import type { SignalingState } from '../../sdk/net/signaling.ts'
import { createSystemTimers } from '../../sdk/net/timers.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import { PROTOCOL } from '../../sdk/protocol/version.ts'

/** A host as this suite needs it. */
export type SignalingHost = {
  readonly url: string
  /** The secret that its private pool asks for. */
  readonly secret: string
  /** Breaks every connection, as a network does; the host itself stays up. */
  dropConnections(): void
  /** Orders a pair between two workers that are connected, and says its id. */
  openPair(initiator: PeerId, other: PeerId): PairId
  close(): Promise<void>
}

/** What a host and the client of this package do together, over real sockets. */
export function describeSignalingHostContract(
  name: string,
  makeHost: () => Promise<SignalingHost>,
): void {
  describe(`${name} keeps the contract of a signaling host`, () => {
    let host: SignalingHost
    const clients: SignalingClient[] = []
    const sockets: Socket[] = []

    beforeEach(async () => {
      host = await makeHost()
    })
    afterEach(async () => {
      for (const client of clients.splice(0)) client.close()
      for (const socket of sockets.splice(0)) socket.disconnect()
      await host.close()
    })

    function join(peer: string, secret = host.secret) {
      const client = createSignaling({
        url: host.url,
        // A name that a test chooses is an id without a parser.
        identity: {
          role: 'worker',
          peer: peer as PeerId,
          token: `token-${peer}`,
          name: peer,
          secret,
        },
        timers: createSystemTimers(),
      })
      clients.push(client)
      const states: SignalingState[] = []
      const messages: ServerMessage[] = []
      const relayed: { pair: PairId; bytes: Uint8Array }[] = []
      client.onState((state) => states.push(state))
      client.onMessage((message) => messages.push(message))
      client.relay.onMessage((pair, bytes) => relayed.push({ pair, bytes }))
      client.connect()
      return { client, states, messages, relayed }
    }

    async function joined(peer: string) {
      const end = join(peer)
      await expect.poll(() => end.states.at(-1)?.kind, POLL).toBe('open')
      return end
    }

    test('SG1 answers the hello with a welcome for the peer that said it', async () => {
      const { states } = await joined('peer-a')
      expect(states.map((state) => state.kind)).toContain('connecting')
      expect(states.at(-1)).toMatchObject({
        welcome: { kind: 'welcome', peer: 'peer-a', protocol: PROTOCOL },
      })
    })

    test('SG2 refuses a wrong secret, and the client does not try again', async () => {
      const { client, states } = join('peer-a', 'not the secret')
      await expect.poll(() => states.at(-1)?.kind, POLL).toBe('refused')
      expect(states.at(-1)).toMatchObject({ error: { code: 'wrong-secret' } })
      client.connect()
      expect(states.at(-1)?.kind).toBe('refused')
      expect(client.send({ kind: 'leave' })).toBe(false)
    })

    test('SG3 names the mismatch to a page of another protocol version', async () => {
      const socket = raw()
      const answers: unknown[] = []
      socket.on('message', (message: unknown) => answers.push(message))
      socket.on('connect', () => {
        socket.emit('message', {
          kind: 'hello',
          protocol: PROTOCOL + 1,
          features: [],
          role: 'worker',
          peer: 'peer-old',
          token: 't',
          name: 'old',
          secret: host.secret,
        })
      })
      await expect
        .poll(() => answers[0], POLL)
        .toMatchObject({ kind: 'refused', error: { code: 'protocol-mismatch' } })
    })

    test('SG4 comes back by itself after a broken connection, as the same peer', async () => {
      const { client, states } = await joined('peer-a')
      states.length = 0
      host.dropConnections()
      await expect.poll(() => states.some((state) => state.kind === 'lost'), POLL).toBe(true)
      await expect.poll(() => states.at(-1)?.kind, POLL).toBe('open')
      expect(states.at(-1)).toMatchObject({ welcome: { peer: 'peer-a' } })
      expect(client.ignoredCount).toBe(0)
    })

    test('SG5 buffers nothing while there is no connection', async () => {
      const { client, states } = await joined('peer-a')
      host.dropConnections()
      await expect.poll(() => states.at(-1)?.kind, POLL).not.toBe('open')
      expect(client.send({ kind: 'leave' })).toBe(false)
      // A name that a test chooses is an id without a parser.
      expect(client.relay.send('pair' as PairId, new Uint8Array(4))).toBe(false)
    })

    test('SG6 refuses what is no message and goes on serving the others', async () => {
      const good = await joined('peer-a')
      const socket = raw()
      await new Promise<void>((done) => socket.on('connect', done))
      for (const junk of [undefined, 7, 'text', {}, { kind: 'nonsense' }, { kind: 'hello' }]) {
        socket.emit('message', junk)
      }
      socket.emit('relay', 5, 'not bytes')
      await joined('peer-b')
      expect(good.states.at(-1)?.kind).toBe('open')
    })

    test('PA1 orders a pair on both ends, with one initiator, and forwards its signals', async () => {
      const a = await joined('peer-a')
      const b = await joined('peer-b')
      const pair = host.openPair('peer-a' as PeerId, 'peer-b' as PeerId)
      const opened = (end: typeof a) =>
        end.messages.find((message) => message.kind === 'pair-open' && message.pair === pair)
      await expect.poll(() => opened(a) !== undefined && opened(b) !== undefined, POLL).toBe(true)
      expect(opened(a)).toMatchObject({ peer: 'peer-b', initiator: true })
      expect(opened(b)).toMatchObject({ peer: 'peer-a', initiator: false })
      const order = opened(a)
      if (order?.kind !== 'pair-open') throw new Error('no order')
      a.client.send({ kind: 'signal', pair, attempt: order.attempt, data: { hello: 'b' } })
      await expect
        .poll(() => b.messages.find((message) => message.kind === 'signal'), POLL)
        .toMatchObject({ pair, attempt: order.attempt, data: { hello: 'b' } })
      expect(a.messages.some((message) => message.kind === 'signal')).toBe(false)
    })

    test('RL5 relays bytes to the other end of a pair, unchanged and in order', async () => {
      const a = await joined('peer-a')
      const b = await joined('peer-b')
      const pair = host.openPair('peer-a' as PeerId, 'peer-b' as PeerId)
      await expect.poll(() => b.messages.some((m) => m.kind === 'pair-open'), POLL).toBe(true)
      const sent = [1, 2_000, 60_000].map((size) => new Uint8Array(size).fill(size & 255))
      for (const bytes of sent) expect(a.client.relay.send(pair, bytes)).toBe(true)
      await expect.poll(() => b.relayed.length, POLL).toBe(sent.length)
      expect(b.relayed.map(({ pair: of }) => of)).toEqual([pair, pair, pair])
      const same = b.relayed.map(({ bytes }, index) => Buffer.compare(bytes, sent[index]!) === 0)
      expect(same).toEqual([true, true, true])
      expect(a.relayed).toEqual([])
    })

    test('RL5 relays nothing for a pair that the sender is no end of', async () => {
      const a = await joined('peer-a')
      const b = await joined('peer-b')
      const stranger = await joined('peer-c')
      const pair = host.openPair('peer-a' as PeerId, 'peer-b' as PeerId)
      await expect.poll(() => b.messages.some((m) => m.kind === 'pair-open'), POLL).toBe(true)
      stranger.client.relay.send(pair, new Uint8Array([6, 6, 6]))
      a.client.relay.send(pair, new Uint8Array([1]))
      await expect.poll(() => b.relayed.length, POLL).toBeGreaterThan(0)
      expect(b.relayed.map(({ bytes }) => [...bytes])).toEqual([[1]])
    })

    function raw(): Socket {
      const socket = io(host.url, {
        transports: ['websocket'],
        forceNew: true,
        reconnection: false,
      })
      sockets.push(socket)
      return socket
    }
  })
}

const POLL = { timeout: 10_000, interval: 10 }
