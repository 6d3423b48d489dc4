import { createServer } from 'node:http'
import { Server, type Socket } from 'socket.io'
import type { ErrorCode } from '../../sdk/core/errors.ts'
import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import { parseClientMessage } from '../../sdk/protocol/parse.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import { FEATURES, PROTOCOL } from '../../sdk/protocol/version.ts'
import type { SignalingHost } from '../contracts/signaling-host.contract.ts'

/** A host small enough to be read at a glance, with a test's hands on it. */
export type StandInHost = SignalingHost & {
  /** Sends anything to a peer, messages or not. */
  emit(peer: string, event: 'message' | 'relay', ...args: unknown[]): void
  /** Disconnects a peer in the way that socket.io doesn't retry by itself; with a code, after a refusal. */
  kick(peer: string, code?: ErrorCode): void
  /** Answers hellos, or leaves them unanswered; whose hello waits can still be sent something. */
  mute(muted: boolean): void
  /** Answers hellos from now on, also the one of `peer` that waits. */
  welcome(peer: PeerId): void
  readonly hellos: { readonly peer: string; readonly token: string }[]
  /** All messages, hellos included. */
  readonly received: ClientMessage[]
  readonly relayed: Uint8Array[]
}

export async function createStandInHost(): Promise<StandInHost> {
  const http = createServer()
  const server = new Server(http, { transports: ['websocket'], maxHttpBufferSize: 4e6 })
  const sockets = new Map<string, Socket>()
  const pairs = new Map<string, [string, string]>()
  const hellos: { peer: string; token: string }[] = []
  const received: ClientMessage[] = []
  const relayed: Uint8Array[] = []
  let muted = false

  server.on('connection', (socket) => {
    let own = ''
    const say = (message: ServerMessage) => socket.emit('message', message)
    socket.on('message', (input: unknown) => {
      const parsed = parseClientMessage(input)
      if (!parsed.ok) return
      const { message } = parsed
      received.push(message)
      if (message.kind === 'hello') {
        hellos.push({ peer: message.peer, token: message.token })
        own = message.peer
        sockets.set(own, socket)
        if (muted) return
        const refusal = refusalOf(message.protocol, message.secret)
        if (refusal !== null) {
          say({ kind: 'refused', error: { code: refusal, message: 'no' } })
          socket.disconnect()
          return
        }
        say(welcome(message.peer, message.name))
      } else if (message.kind === 'signal') {
        sockets.get(otherEnd(message.pair, own) ?? '')?.emit('message', message)
      }
    })
    socket.on('relay', (pair: unknown, bytes: unknown) => {
      if (typeof pair === 'string' && Buffer.isBuffer(bytes)) {
        relayed.push(bytes)
        sockets.get(otherEnd(pair, own) ?? '')?.emit('relay', pair, bytes)
      }
    })
  })

  function otherEnd(pair: string, own: string): string | undefined {
    const ends = pairs.get(pair)
    if (ends === undefined || !ends.includes(own)) return undefined
    return ends[0] === own ? ends[1] : ends[0]
  }

  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done))
  const address = http.address()
  if (address === null || typeof address === 'string') throw new Error('no port')

  return {
    url: `http://127.0.0.1:${address.port}`,
    secret: SECRET,
    hellos,
    received,
    relayed,
    dropConnections() {
      for (const socket of sockets.values()) socket.conn.close()
    },
    openPair(initiator, other) {
      const pair = `pair-${pairs.size}` as PairId
      pairs.set(pair, [initiator, other])
      const order = (peer: PeerId, leads: boolean): ServerMessage => ({
        kind: 'pair-open',
        pair,
        peer,
        initiator: leads,
        attempt: 1,
        iceServers: [],
      })
      sockets.get(initiator)?.emit('message', order(other, true))
      sockets.get(other)?.emit('message', order(initiator, false))
      return pair
    },
    emit: (peer, event, ...args) => void sockets.get(peer)?.emit(event, ...args),
    kick(peer, code) {
      const socket = sockets.get(peer)
      if (code !== undefined) {
        socket?.emit('message', { kind: 'refused', error: { code, message: 'no' } })
      }
      socket?.disconnect(true)
    },
    mute(next) {
      muted = next
    },
    welcome(peer) {
      if (muted) sockets.get(peer)?.emit('message', welcome(peer, peer))
      muted = false
    },
    close: () => server.close(),
  }
}

const SECRET = 'right'

function refusalOf(protocol: number, secret: string): string | null {
  if (protocol !== PROTOCOL) return 'protocol-mismatch'
  return secret === SECRET ? null : 'wrong-secret'
}

function welcome(peer: PeerId, name: string): ServerMessage {
  return {
    kind: 'welcome',
    protocol: PROTOCOL,
    features: [...FEATURES],
    peer,
    name,
    // A name that a test chooses is an id without a parser.
    model: 'model' as Extract<ServerMessage, { kind: 'welcome' }>['model'],
    revision: 'r1',
    manifestPath: '/m',
  }
}
