import { createServer } from 'node:http'
import { io, type Socket } from 'socket.io-client'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PairId, SessionId } from '../../sdk/core/ids.ts'
import { BAD_MESSAGES_MAX, CHUNK_BYTES, CONTROL_BURST } from '../../sdk/core/limits.ts'
import { PROTOCOL } from '../../sdk/protocol/version.ts'
import { createAdmission } from '../../signaling/admission.ts'
import { createGuard } from '../../signaling/guard.ts'
import type { PeerConnection, PeerHandle } from '../../signaling/peer-connection.ts'
import { createSocketGateway, type SocketGateway } from '../../signaling/socket-gateway.ts'

const POLL = { timeout: 5_000, interval: 5 }

/** The gateway with hands on both of its sides: what peers send, and what the service does. */
type Fixture = {
  readonly gateway: SocketGateway
  readonly faults: string[]
  readonly received: string[]
  connection: PeerConnection | null
  onReceive: () => void
  onClosed: () => void
  refuseJoin: Error | null
  port: number
}

let fixture: Fixture
let sockets: Socket[] = []

beforeEach(async () => {
  const server = createServer()
  const faults: string[] = []
  const received: string[] = []
  const gateway = createSocketGateway({
    server,
    admission: createAdmission(null),
    guard: createGuard((line) => faults.push(line)),
    service: {
      join(entry, connection): PeerHandle {
        if (fixture.refuseJoin) throw fixture.refuseJoin
        fixture.connection = connection
        return {
          peer: entry.peer,
          receive(message) {
            received.push(message.kind)
            fixture.onReceive()
          },
          relay: () => true,
          closed: () => fixture.onClosed(),
        }
      },
    },
  })
  const nothing = () => undefined
  const hooks = { connection: null, onReceive: nothing, onClosed: nothing, refuseJoin: null }
  fixture = { gateway, faults, received, ...hooks, port: 0 }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address === 'object' && address !== null) fixture.port = address.port
})

afterEach(async () => {
  for (const socket of sockets) socket.disconnect()
  sockets = []
  await fixture.gateway.close()
})

function open(token = 'token-a'): { socket: Socket; refused: string[] } {
  const options = { transports: ['websocket'], forceNew: true, reconnection: false }
  const socket = io(`http://127.0.0.1:${fixture.port}`, options)
  sockets.push(socket)
  const refused: string[] = []
  socket.on('message', (message: { kind: string; error?: { code: string } }) => {
    if (message.kind === 'refused') refused.push(message.error?.code ?? '')
  })
  socket.emit('message', {
    kind: 'hello',
    protocol: PROTOCOL,
    features: [],
    role: 'worker',
    peer: 'peer-a',
    token,
    name: 'A',
    secret: '',
  })
  return { socket, refused }
}

async function joined(): Promise<{ socket: Socket; refused: string[] }> {
  const end = open()
  await expect.poll(() => fixture.connection, POLL).not.toBeNull()
  return end
}

test('SG16 a ring of one fast tab is not cut off: its tokens count apart', async () => {
  const { socket, refused } = await joined()
  const head = { session: 1 as SessionId, epoch: 1 }
  const sampled = { token: 1, logprob: 0, top: [] }
  const tokens = CONTROL_BURST * 2
  for (let position = 0; position < tokens; position++)
    socket.emit('message', { kind: 'session-token', ...head, position, sampled })
  await expect.poll(() => fixture.received.length, POLL).toBe(tokens)
  expect(refused).toEqual([])
  expect(socket.connected).toBe(true)
})

test('SG16 a receiver that takes nothing is cut off by the bytes that wait for it', async () => {
  const { socket } = await joined()
  let closed = false
  fixture.onClosed = () => (closed = true)
  pauseReading(socket)
  // Far fewer packets than bytes matter; the system's own buffers take the first few megabytes.
  const bytes = new Uint8Array(CHUNK_BYTES)
  const pair = 'p' as PairId
  for (let index = 0; index < 1_000 && !closed; index++) {
    fixture.connection?.sendRelay(pair, bytes)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await expect.poll(() => closed, POLL).toBe(true)
})

test('closing does not wait for a receiver that takes nothing', async () => {
  const { socket } = await joined()
  pauseReading(socket)
  for (let index = 0; index < 20; index++)
    fixture.connection?.sendRelay('p' as PairId, new Uint8Array(CHUNK_BYTES))
  const began = performance.now()
  await fixture.gateway.close()
  expect(performance.now() - began).toBeLessThan(4_000)
})

/** No public way to stop reading; the shape is that of `ws`, which carries the client in Node. */
function pauseReading(socket: Socket): void {
  const { ws } = socket.io.engine.transport as unknown as { ws: { pause(): void } }
  ws.pause()
}

test('a fault of the host in a handler is told, logged and not held against the peer', async () => {
  const { socket, refused } = await joined()
  fixture.onReceive = () => {
    throw new TypeError('no such map')
  }
  const times = BAD_MESSAGES_MAX + 1
  for (let index = 0; index < times; index++) socket.emit('message', { kind: 'leave' })
  await expect.poll(() => refused, POLL).toEqual(Array.from({ length: times }, () => 'internal'))
  expect(socket.connected).toBe(true)
  expect(fixture.faults).toEqual([expect.stringContaining('no such map')])
  expect(fixture.gateway.badMessages()).toBe(0)
  fixture.onClosed = () => {
    throw new TypeError('no such seat')
  }
  socket.disconnect()
  await expect
    .poll(() => fixture.faults.at(-1), POLL)
    .toContain('fault in a disconnect: no such seat')
})

test('SG14 a device that was not let in owns no identity', async () => {
  fixture.refuseJoin = new Error('full')
  const { refused } = open()
  await expect.poll(() => refused, POLL).toEqual(['internal'])
  fixture.refuseJoin = null
  const rightful = open('another token')
  await expect.poll(() => fixture.connection, POLL).not.toBeNull()
  expect(rightful.refused).toEqual([])
})
