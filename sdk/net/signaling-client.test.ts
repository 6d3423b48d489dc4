import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { describeSignalingContract } from '../../test/contracts/signaling.contract.ts'
import { describeSignalingHostContract } from '../../test/contracts/signaling-host.contract.ts'
import { createManualTimers } from '../../test/support/manual-timers.ts'
import { createStandInHost, type StandInHost } from '../../test/support/stand-in-host.ts'
import type { ModelId, PairId, PeerId, RequestId } from '../core/ids.ts'
import {
  CHUNK_BYTES,
  CONTROL_MESSAGE_MAX_BYTES,
  HELLO_MS,
  PROMPT_MAX_TOKENS,
  RECONNECT_FIRST_MS,
} from '../core/limits.ts'
import { GREEDY } from '../core/sampling/params.ts'
import type { ServerMessage } from '../protocol/server-to-client.ts'
import { createSignaling, type SignalingClient } from './signaling-client.ts'
import type { SignalingState } from './signaling.ts'
import { createSystemTimers } from './timers.ts'

describeSignalingHostContract('the stand-in host', createStandInHost)

describeSignalingContract('the client over socket.io', async () => {
  const host = await createStandInHost()
  host.mute(true)
  const peer = 'me' as PeerId
  const signaling = createSignaling({
    url: host.url,
    identity: { role: 'worker', peer, token: 'own', name: 'Me', secret: host.secret },
    timers: createSystemTimers(),
  })
  const onceGreeted = async (task: () => void) => {
    await expect.poll(() => host.hellos.length, POLL).toBeGreaterThan(0)
    task()
  }
  return {
    signaling,
    sent: () => host.received.filter((message) => message.kind !== 'hello'),
    relayed: () => host.relayed,
    welcome: () => void onceGreeted(() => host.welcome(peer)),
    say: (message) => void onceGreeted(() => host.emit('me', 'message', message)),
    relay: (pair, bytes) => void onceGreeted(() => host.emit('me', 'relay', pair, bytes)),
    lose: () => host.dropConnections(),
    refuse: (error) => host.kick('me', error.code),
    close: () => host.close(),
  }
})

describe('signaling client', () => {
  let host: StandInHost
  const clients: SignalingClient[] = []
  beforeEach(async () => {
    host = await createStandInHost()
  })
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close()
    await host.close()
  })

  function join() {
    const timers = createManualTimers()
    const logs: string[] = []
    const client = createSignaling({
      url: host.url,
      identity: { role: 'asker', peer: 'me' as PeerId, token: 'own', name: 'Me', secret: 'right' },
      timers,
      log: (event) => logs.push(event),
    })
    clients.push(client)
    const states: SignalingState[] = []
    const messages: ServerMessage[] = []
    const relayed: Uint8Array[] = []
    client.onState((state) => states.push(state))
    client.onMessage((message) => messages.push(message))
    client.relay.onMessage((_pair, bytes) => relayed.push(bytes))
    const last = () => states.at(-1)?.kind
    client.connect()
    return { client, timers, logs, states, messages, relayed, last }
  }

  async function joined() {
    const end = join()
    await expect.poll(end.last, POLL).toBe('open')
    return end
  }

  test('SG4 says the same hello on every connect', async () => {
    const { last } = await joined()
    host.dropConnections()
    await expect.poll(() => host.hellos.length, POLL).toBe(2)
    await expect.poll(last, POLL).toBe('open')
    expect(host.hellos[1]).toEqual(host.hellos[0])
    expect(host.hellos[0]).toEqual({ peer: 'me', token: 'own' })
  })

  test('SG4 says nothing before the hello after its device slept', async () => {
    const { client, last } = await joined()
    const hour = 3_600_000
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + hour)
    try {
      client.send({ kind: 'leave' })
      await expect.poll(last, POLL).toBe('lost')
    } finally {
      clock.mockRestore()
    }
    await expect.poll(last, POLL).toBe('open')
    await expect.poll(() => host.received.map(({ kind }) => kind), POLL).toEqual(['hello', 'hello'])
  })

  test('SG4 comes back after the host itself closed the socket', async () => {
    const { timers, last } = await joined()
    host.kick('me')
    await expect.poll(last, POLL).toBe('lost')
    await timers.advance(RECONNECT_FIRST_MS)
    await expect.poll(last, POLL).toBe('open')
  })

  test('SG11 stays away after a refusal that ended the connection', async () => {
    const { client, states, timers, last } = await joined()
    host.kick('me', 'bad-request')
    await expect.poll(last, POLL).toBe('refused')
    expect(states.at(-1)).toMatchObject({ error: { code: 'bad-request', message: 'no' } })
    client.connect()
    await timers.advance(60_000)
    expect(host.hellos.length).toBe(1)
  })

  test('SG11 comes back after a refusal that passes with time', async () => {
    const { timers, states, last } = await joined()
    host.kick('me', 'too-many-requests')
    await expect.poll(last, POLL).toBe('lost')
    expect(states.at(-1)).toEqual({ kind: 'lost', reason: 'no' })
    await timers.advance(RECONNECT_FIRST_MS)
    await expect.poll(last, POLL).toBe('open')
  })

  test('SG6 stays connected after a refused message', async () => {
    const { messages, last } = await joined()
    host.emit('me', 'message', { kind: 'refused', error: { code: 'bad-message', message: 'no' } })
    await expect.poll(() => messages.length, POLL).toBe(1)
    expect(last()).toBe('open')
  })

  test('SG7 counts, logs and ignores what is no message, and lives on', async () => {
    const { client, logs, messages, relayed } = await joined()
    host.emit('me', 'message', { kind: 'pair-open', pair: 'p', attempt: -1 })
    host.emit('me', 'message', 'hello')
    host.emit('me', 'message', { kind: 'from the future' })
    host.emit('me', 'relay', 'p p', Buffer.alloc(4))
    host.emit('me', 'relay', 'p', 'text')
    host.emit('me', 'relay', 'p', Buffer.alloc(CHUNK_BYTES + 1))
    host.emit('me', 'message', { kind: 'pair-close', pair: 'p', reason: 'end', extra: 1 })
    await expect
      .poll(() => messages, POLL)
      .toEqual([{ kind: 'pair-close', pair: 'p', reason: 'end' }])
    expect(client.ignoredCount).toBe(6)
    expect(logs.length).toBe(6)
    expect(logs[0]).toContain('pair-open')
    expect(relayed).toEqual([])
  })

  test('SG8 checks sizes before it sends', async () => {
    const { client } = await joined()
    const huge = {
      kind: 'signal',
      pair: 'p' as PairId,
      attempt: 1,
      data: 'x'.repeat(CONTROL_MESSAGE_MAX_BYTES),
    }
    expect(() => client.send({ ...huge, kind: 'signal' })).toThrow(/limit/)
    expect(() => client.relay.send('p' as PairId, new Uint8Array(CHUNK_BYTES + 1))).toThrow(
      expect.objectContaining({ code: 'bad-message' }),
    )
    expect(client.send({ ...huge, kind: 'signal', data: 'x' })).toBe(true)
  })

  test('SG8 lets the longest prompt through and calls a longer one by its name', async () => {
    const { client } = await joined()
    const ask = (tokens: number) =>
      client.send({
        kind: 'ask',
        request: 'r' as RequestId,
        model: 'm' as ModelId,
        // As wide as the ids of today's largest vocabularies.
        prompt: new Array<number>(tokens).fill(262_143),
        maxTokens: 1,
        stopIds: [],
        sampling: { ...GREEDY, logitBias: Array.from({ length: 1_024 }, (_, id) => [id, -99.5]) },
      })
    expect(ask(PROMPT_MAX_TOKENS)).toBe(true)
    await expect.poll(() => host.received.length, POLL).toBe(2)
    expect(host.received[1]).toMatchObject({ kind: 'ask' })
    expect(() => ask(PROMPT_MAX_TOKENS + 1)).toThrow(
      expect.objectContaining({ code: 'prompt-too-long' }),
    )
  })

  test('SG9 tries again when its hello is not answered in time', async () => {
    host.mute(true)
    const { timers, states, last } = join()
    await expect.poll(() => host.hellos.length, POLL).toBe(1)
    await timers.advance(HELLO_MS)
    expect(states.at(-1)).toMatchObject({ kind: 'lost' })
    host.mute(false)
    await expect.poll(last, POLL).toBe('open')
    expect(host.hellos.length).toBe(2)
  })

  test('SG5 closes for good, and leaves no timer', async () => {
    const { client, timers, states } = await joined()
    client.close()
    client.close()
    client.connect()
    expect(states.map((state) => state.kind)).toEqual([
      'connecting',
      'connecting',
      'open',
      'closed',
    ])
    expect(client.send({ kind: 'leave' })).toBe(false)
    expect(timers.pending).toBe(0)
  })

  test('SG4 keeps trying while the host is down', async () => {
    const { last } = await joined()
    await host.close()
    await expect.poll(last, POLL).toBe('lost')
    host = await createStandInHost()
  })
})

const POLL = { timeout: 10_000, interval: 10 }
