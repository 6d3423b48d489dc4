import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket as NetSocket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { Server, type Socket } from 'socket.io'
import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import type { PairId } from '../sdk/core/ids.ts'
import {
  BAD_MESSAGES_MAX,
  CHUNK_BYTES,
  CONTROL_BURST,
  CONTROL_MESSAGE_MAX_BYTES,
  CONTROL_RATE_PER_SECOND,
  HELLO_MS,
  SOCKET_MESSAGE_MAX_BYTES,
  TOKEN_BURST,
  TOKEN_RATE_PER_SECOND,
  UNSENT_MAX_BYTES,
} from '../sdk/core/limits.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import { parseClientMessage } from '../sdk/protocol/parse.ts'
import type { ServerMessage } from '../sdk/protocol/server-to-client.ts'
import { PIECES_FEATURE } from '../sdk/protocol/version.ts'
import { checkProtocol, type Admission } from './admission.ts'
import type { Guard } from './guard.ts'
import type { PeerConnection, PeerHandle } from './peer-connection.ts'
import { createRelayQueue } from './relay-queue.ts'
import type { SwarmService } from './swarm-service.ts'
import { createTokenBucket } from './token-bucket.ts'

type SocketGatewayDeps = {
  readonly server: HttpServer | HttpsServer
  readonly admission: Admission
  readonly service: Pick<SwarmService, 'join'>
  readonly guard: Guard
}

export type SocketGateway = {
  /** How many messages were refused since the start. */
  badMessages(): number
  close(): Promise<void>
}

/** A socket is noticed as dead after at most both together. */
const PING_MS = 2_000
const PING_TIMEOUT_MS = 3_000
/** Peers that take their goodbye no sooner than this go without. */
const CLOSE_MS = 1_000
/** A packet that waits takes at least this much memory, however short. */
const PACKET_MIN_BYTES = 256

type Incoming = {
  message: (input: unknown) => void
  relay: (pair: unknown, bytes: unknown) => void
}
type Outgoing = {
  message: (message: ServerMessage) => void
  relay: (pair: PairId, bytes: Uint8Array) => void
}
type PeerSocket = Socket<Incoming, Outgoing>

/** Carries peers over socket.io; nothing else knows of it. Websocket only, so that one peer is one socket. */
export function createSocketGateway(deps: SocketGatewayDeps): SocketGateway {
  const io = new Server<Incoming, Outgoing>(deps.server, {
    transports: ['websocket'],
    serveClient: false,
    perMessageDeflate: false,
    httpCompression: false,
    maxHttpBufferSize: SOCKET_MESSAGE_MAX_BYTES,
    pingInterval: PING_MS,
    pingTimeout: PING_TIMEOUT_MS,
  })
  let badMessages = 0
  const wires = new Set<NetSocket>()
  io.on('connection', (socket) => {
    const wire = socket.request.socket
    wires.add(wire)
    wire.once('close', () => wires.delete(wire))
    deps.guard('a new connection', () => serveSocket(deps, socket, () => (badMessages += 1)))
  })
  return {
    badMessages: () => badMessages,
    async close() {
      const timer = setTimeout(() => {
        for (const wire of wires) wire.destroy()
      }, CLOSE_MS)
      await io.close()
      clearTimeout(timer)
    },
  }
}

function serveSocket(deps: SocketGatewayDeps, socket: PeerSocket, onBad: () => void): void {
  const { guard } = deps
  const withinRate = createRates()
  let unseat: (() => void) | null = null
  let handle: PeerHandle | null = null
  let bad = 0
  const helloTimer = setTimeout(
    () => refuse(socket, new CrowdError('timeout', `no hello within ${HELLO_MS / 1_000} s`)),
    HELLO_MS,
  )
  const relayQueue = createRelayQueue({
    forward: (pair, bytes) => void handle?.relay(pair, bytes),
    onOverflow: () => refuse(socket, new CrowdError('too-many-requests', 'too many relay bytes')),
    now: () => performance.now(),
    later(ms, task) {
      const timer = setTimeout(() => guard('the relay', task), ms)
      return () => clearTimeout(timer)
    },
  })

  /** A wrong message is answered and counted; the socket closes when they go on, or before the welcome. */
  function fault(error: CrowdError): void {
    onBad()
    bad += 1
    if (handle === null || bad >= BAD_MESSAGES_MAX) refuse(socket, error)
    else socket.emit('message', { kind: 'refused', error: error.toWire() })
  }

  /** A wrong message is its sender's fault; a fault of the host is answered too, but not counted. */
  function onThrown(thrown: unknown): void {
    const error = toCrowdError(thrown)
    if (error.code !== 'internal') {
      fault(error)
      return
    }
    if (handle === null) refuse(socket, error)
    else socket.emit('message', { kind: 'refused', error: error.toWire() })
    throw error
  }

  function greet(hello: ClientMessageOf<'hello'>): void {
    deps.admission.check(hello)
    handle = deps.service.join(
      {
        peer: hello.peer,
        name: hello.name,
        role: hello.role,
        sharesPieces: hello.features.includes(PIECES_FEATURE),
      },
      connectionOf(socket),
    )
    unseat = deps.admission.seat(hello)
    clearTimeout(helloTimer)
  }

  function onMessage(input: unknown): void {
    if (!socket.connected) return
    if (!withinRate(input)) {
      refuse(socket, new CrowdError('too-many-requests', 'too many messages in a short time'))
      return
    }
    try {
      if (handle === null) checkHelloProtocol(input)
      const parsed = parseClientMessage(input)
      if (!parsed.ok) throw parsed.error
      if (handle !== null) handle.receive(parsed.message)
      else if (parsed.message.kind === 'hello') greet(parsed.message)
      else throw new CrowdError('bad-message', 'the first message must be a hello')
    } catch (thrown) {
      onThrown(thrown)
    }
  }

  socket.on('message', (input) => guard('a message', () => onMessage(input)))
  socket.on('relay', (pair, bytes) => {
    if (typeof pair === 'string' && pair.length <= 80 && isChunk(bytes) && handle !== null)
      // Checked against the pairs that exist before anything is sent.
      guard('the relay', () => relayQueue.push(pair as PairId, bytes))
    else fault(new CrowdError('bad-message', 'relay: not a pair and at most 64 kB of bytes'))
  })
  limitTextSize(socket)
  socket.on('disconnect', (reason) => {
    clearTimeout(helloTimer)
    relayQueue.close()
    unseat?.()
    // It said goodbye. A `leave` may be dropped: socket.io delivers nothing that came together with the goodbye.
    if (reason === 'client namespace disconnect')
      guard('a goodbye', () => handle?.receive({ kind: 'leave' }))
    guard('a disconnect', () => handle?.closed())
  })
}

/** Whether a message may come now. Told apart before it is parsed: a flood must stay cheap. */
function createRates(): (input: unknown) => boolean {
  const now = (): number => performance.now()
  const control = { perSecond: CONTROL_RATE_PER_SECOND, burst: CONTROL_BURST }
  const tokens = { perSecond: TOKEN_RATE_PER_SECOND, burst: TOKEN_BURST }
  const controlBucket = createTokenBucket(control, now)
  const tokenBucket = createTokenBucket(tokens, now)
  return (input) => (isToken(input) ? tokenBucket : controlBucket).take(1)
}

function isToken(input: unknown): boolean {
  if (typeof input !== 'object' || input === null || !('kind' in input)) return false
  return ['session-token', 'session-timings', 'session-step'].includes(String(input.kind))
}

function isChunk(bytes: unknown): bytes is Uint8Array {
  return bytes instanceof Uint8Array && bytes.byteLength <= CHUNK_BYTES
}

/** An old page's hello may not even have our shape; it must still be told to reload. */
function checkHelloProtocol(input: unknown): void {
  if (typeof input !== 'object' || input === null) return
  if (!('kind' in input) || input.kind !== 'hello') return
  if ('protocol' in input && typeof input.protocol === 'number') checkProtocol(input.protocol)
}

/** What socket.io writes round a message. */
const ENVELOPE_CHARS = 256

/** Text packets are control messages, with a lower cap than the socket's own. */
function limitTextSize(socket: PeerSocket): void {
  socket.conn.on('packet', (packet: { type: string; data?: unknown }) => {
    const limit = CONTROL_MESSAGE_MAX_BYTES + ENVELOPE_CHARS
    if (typeof packet.data !== 'string' || packet.data.length <= limit) return
    refuse(
      socket,
      new CrowdError('bad-message', `a message is larger than ${CONTROL_MESSAGE_MAX_BYTES} bytes`),
    )
  })
}

function refuse(socket: PeerSocket, error: CrowdError): void {
  socket.emit('message', { kind: 'refused', error: error.toWire() })
  socket.disconnect(true)
}

function connectionOf(socket: PeerSocket): PeerConnection {
  const unsent = countUnsent(socket)
  const keepsUp = (): boolean => {
    if (unsent() < UNSENT_MAX_BYTES) return true
    // A polite end would wait behind everything that it doesn't take.
    socket.request.socket.destroy()
    return false
  }
  return {
    send(message) {
      if (socket.connected && keepsUp()) socket.emit('message', message)
    },
    sendRelay(pair, bytes) {
      if (socket.connected && keepsUp()) socket.emit('relay', pair, bytes)
    },
    close() {
      socket.disconnect(true)
    },
  }
}

/** Bytes that wait because the receiver hasn't taken what was sent before. A flush takes all that wait. */
function countUnsent(socket: PeerSocket): () => number {
  let waiting = 0
  socket.conn.on('packetCreate', (packet: { readonly data?: unknown }) => {
    waiting += Math.max(PACKET_MIN_BYTES, sizeOf(packet.data))
  })
  socket.conn.on('flush', () => {
    waiting = 0
  })
  return () => waiting
}

function sizeOf(data: unknown): number {
  if (typeof data === 'string') return data.length
  return data instanceof Uint8Array ? data.byteLength : 0
}
