import { io, type Socket } from 'socket.io-client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  BAD_MESSAGES_MAX,
  CONTROL_BURST,
  CONTROL_MESSAGE_MAX_BYTES,
  SOCKET_MESSAGE_MAX_BYTES,
} from '../../sdk/core/limits.ts'
import { parseServerMessage } from '../../sdk/protocol/parse.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import { PROTOCOL } from '../../sdk/protocol/version.ts'
import { startTestHost, type TestHost } from '../support/host-on-disk.ts'

const POLL = { timeout: 5_000, interval: 5 }

type End = {
  readonly socket: Socket
  readonly messages: ServerMessage[]
  readonly relayed: [string, Uint8Array][]
  /** Why the socket closed; null while it is open. */
  closed: string | null
}

describe('the gateway over real sockets', () => {
  let host: TestHost
  const sockets: Socket[] = []
  beforeEach(async () => {
    host = await startTestHost()
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.disconnect()
    await host.close()
  })

  async function connect(): Promise<End> {
    const socket = io(host.origin, {
      transports: ['websocket'],
      forceNew: true,
      reconnection: false,
    })
    sockets.push(socket)
    const end: End = { socket, messages: [], relayed: [], closed: null }
    socket.on('message', (input: unknown) => {
      const parsed = parseServerMessage(input)
      if (!parsed.ok) throw parsed.error
      end.messages.push(parsed.message)
    })
    socket.on('relay', (pair: string, bytes: Uint8Array) => end.relayed.push([pair, bytes]))
    socket.on('disconnect', (reason) => (end.closed = reason))
    await expect.poll(() => socket.connected, POLL).toBe(true)
    return end
  }

  function hello(over: Record<string, unknown> = {}): Record<string, unknown> {
    return {
      kind: 'hello',
      protocol: PROTOCOL,
      features: [],
      role: 'worker',
      peer: 'peer-a',
      token: 'token-a',
      name: 'A',
      secret: host.started.secret,
      ...over,
    }
  }

  async function joined(peer: string, over: Record<string, unknown> = {}): Promise<End> {
    const end = await connect()
    end.socket.emit('message', hello({ peer, token: `token-${peer}`, name: peer, ...over }))
    await expect.poll(() => end.messages[0]?.kind, POLL).toBe('welcome')
    return end
  }

  async function refusal(end: End): Promise<string> {
    await expect.poll(() => end.closed, POLL).not.toBeNull()
    const last = end.messages.findLast((message) => message.kind === 'refused')
    return last?.kind === 'refused' ? last.error.code : 'none'
  }

  function kinds(end: End): string[] {
    return end.messages.map((message) => message.kind)
  }

  /** Two workers that hold everything; their pair's id. */
  async function linkedPair(): Promise<{ a: End; b: End; pair: string }> {
    const a = await joined('peer-a')
    const b = await joined('peer-b')
    for (const end of [a, b]) {
      end.socket.emit('message', {
        kind: 'pledge',
        memoryBytes: 1e9,
        provider: 'wasm',
        threads: 1,
        revision: 'r1',
        cached: [],
        hidden: false,
      })
      await expect.poll(() => kinds(end), POLL).toContain('assign')
      const assign = end.messages.find((message) => message.kind === 'assign')
      end.socket.emit('message', {
        kind: 'stage-state',
        assignment: assign?.kind === 'assign' ? assign.assignment : 0,
        state: 'ready',
        doneBytes: 1,
        totalBytes: 1,
        fetchedBytes: 1,
      })
    }
    await expect.poll(() => kinds(b), POLL).toContain('pair-open')
    await expect.poll(() => kinds(a), POLL).toContain('pair-open')
    const open = b.messages.find((message) => message.kind === 'pair-open')
    return { a, b, pair: open?.kind === 'pair-open' ? open.pair : '' }
  }

  test('a worker that ends its connection itself is gone at once, one whose line breaks keeps its place', async () => {
    const names = () =>
      host.host
        .service()
        .snapshot()
        .peers.map(({ name }) => name)
    const left = await joined('left')
    const broken = await joined('broken')
    left.socket.emit('message', { kind: 'leave' })
    left.socket.disconnect()
    broken.socket.io.engine.close()
    await expect.poll(names, POLL).toEqual(['broken'])
  })

  test('SG1 a right hello is welcomed with the model and where its manifest lies', async () => {
    const end = await joined('peer-a')
    expect(end.messages[0]).toMatchObject({
      kind: 'welcome',
      peer: 'peer-a',
      model: 'test-model',
      revision: 'r1',
      manifestPath: '/models/test-model/manifest.json',
    })
    await expect.poll(() => kinds(end), POLL).toContain('swarm')
  })

  test('SG2 PO1 a wrong secret is refused for every role, and so is none', async () => {
    for (const over of [
      { secret: 'wrong' },
      { secret: '', role: 'asker' },
      { secret: 'wrong', role: 'watcher' },
    ]) {
      const end = await connect()
      end.socket.emit('message', hello(over))
      expect(await refusal(end)).toBe('wrong-secret')
    }
    expect(host.host.service().snapshot().peers).toEqual([])
  })

  test('PO2 an open pool lets in whoever comes, with any secret or none', async () => {
    await host.close()
    host = await startTestHost({ public: true })
    await joined('peer-a', { secret: '' })
    await joined('peer-b', { secret: 'of another pool', role: 'asker' })
  })

  test('SG3 an old protocol number is told to reload, whatever else its hello looks like', async () => {
    const end = await connect()
    end.socket.emit('message', { kind: 'hello', protocol: PROTOCOL + 1 })
    expect(await refusal(end)).toBe('protocol-mismatch')
  })

  test('SG1 anything before the hello closes the socket', async () => {
    for (const first of [{ kind: 'leave' }, { kind: 'nonsense' }, 7, null]) {
      const end = await connect()
      end.socket.emit('message', first)
      expect(await refusal(end)).toBe('bad-message')
    }
    const end = await connect()
    end.socket.emit('relay', 'pair-1', Buffer.alloc(4))
    expect(await refusal(end)).toBe('bad-message')
  })

  test('SG15 the same device with its token takes over; the older socket is closed', async () => {
    const old = await joined('peer-a')
    const fresh = await joined('peer-a')
    await expect.poll(() => old.closed, POLL).not.toBeNull()
    expect(kinds(old)).toContain('refused')
    expect(fresh.closed).toBeNull()
    expect(host.host.service().snapshot().peers).toHaveLength(1)
  })

  test('SG14 another token for a known device is refused, also after the device left', async () => {
    const owner = await joined('peer-a')
    const thief = await connect()
    thief.socket.emit('message', hello({ token: 'stolen' }))
    expect(await refusal(thief)).toBe('bad-request')
    expect(owner.closed).toBeNull()
    owner.socket.emit('message', { kind: 'leave' })
    await expect.poll(() => host.host.service().snapshot().peers, POLL).toEqual([])
    const again = await connect()
    again.socket.emit('message', hello({ token: 'stolen' }))
    expect(await refusal(again)).toBe('bad-request')
  })

  test('SG6 SG16 a bad message is answered, and the socket closes when they go on', async () => {
    const end = await joined('peer-a')
    end.socket.emit('message', { kind: 'stage-stats', steps: -1 })
    await expect.poll(() => kinds(end), POLL).toContain('refused')
    expect(end.closed).toBeNull()
    for (let count = 1; count < BAD_MESSAGES_MAX; count++) end.socket.emit('message', 'junk')
    expect(await refusal(end)).toBe('bad-message')
  })

  test('SG8 a control message over the limit closes the socket', async () => {
    const end = await joined('peer-a')
    end.socket.emit('message', {
      kind: 'signal',
      pair: 'p',
      attempt: 1,
      data: 'x'.repeat(CONTROL_MESSAGE_MAX_BYTES + 2_000),
    })
    expect(await refusal(end)).toBe('bad-message')
  })

  test('SG8 a message over the socket’s own limit closes it before it is read', async () => {
    const end = await joined('peer-a')
    end.socket.emit('message', 'x'.repeat(SOCKET_MESSAGE_MAX_BYTES + 1))
    await expect.poll(() => end.closed, POLL).not.toBeNull()
  })

  test('SG16 a flood is cut off and nobody else notices', async () => {
    const other = await joined('peer-b')
    const end = await joined('peer-a')
    const signal = { kind: 'signal', pair: 'no-pair', attempt: 1, data: null }
    for (let count = 0; count < CONTROL_BURST * 2; count++) end.socket.emit('message', signal)
    expect(await refusal(end)).toBe('too-many-requests')
    expect(other.closed).toBeNull()
  })

  test('SG12 SG14 the sender is who said hello, whatever a message claims', async () => {
    const a = await joined('peer-a')
    await joined('peer-b')
    a.socket.emit('message', {
      kind: 'pledge',
      peer: 'peer-b',
      sender: 'peer-b',
      memoryBytes: 5_000,
      provider: 'wasm',
      threads: 1,
      revision: 'r1',
      cached: [],
      hidden: false,
    })
    const pledges = () =>
      host.host
        .service()
        .snapshot()
        .peers.map((peer) => [peer.peer, peer.pledgeBytes])
    await expect.poll(pledges, POLL).toEqual([
      ['peer-a', 5_000],
      ['peer-b', 0],
    ])
  })

  test('RL5 relayed bytes reach the other end only, unchanged, and are counted', async () => {
    const { a, b, pair } = await linkedPair()
    const stranger = await joined('peer-c')
    stranger.socket.emit('relay', pair, Buffer.from([6, 6, 6]))
    a.socket.emit('relay', pair, Buffer.from([1, 2, 3]))
    await expect.poll(() => b.relayed.length, POLL).toBe(1)
    expect(b.relayed.map(([id, bytes]) => [id, [...bytes]])).toEqual([[pair, [1, 2, 3]]])
    expect(a.relayed).toEqual([])
    expect(host.host.service().snapshot().relayedBytes).toBe(3)
  })

  test('SG8 a relay message that is too large or no bytes is refused', async () => {
    const { a, b, pair } = await linkedPair()
    a.socket.emit('relay', pair, Buffer.alloc(64 * 1024 + 1))
    a.socket.emit('relay', pair, 'text')
    await expect.poll(() => kinds(a).filter((kind) => kind === 'refused').length, POLL).toBe(2)
    expect(b.relayed).toEqual([])
  })

  test('a closed socket is noticed at once and its partner is told', async () => {
    const { a, b, pair } = await linkedPair()
    a.socket.emit('message', { kind: 'leave' })
    await expect
      .poll(() => b.messages.findLast((message) => message.kind === 'pair-close'), POLL)
      .toMatchObject({ pair })
  })

  test('closing the host ends every socket', async () => {
    const end = await joined('peer-a')
    await host.host.close()
    await expect.poll(() => end.closed, POLL).not.toBeNull()
  })
})
