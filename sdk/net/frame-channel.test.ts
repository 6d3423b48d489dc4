import { describe, expect, test } from 'vitest'
import { describeChannelContract } from '../../test/contracts/channel.contract.ts'
import { createManualTimers, settle } from '../../test/support/manual-timers.ts'
import { tapLink } from '../../test/support/link-tap.ts'
import { testOrder } from '../../test/support/signaling-hub.ts'
import {
  BUFFER_HIGH_BYTES,
  BUFFER_LOW_BYTES,
  CREDIT_BYTES,
  HANDSHAKE_REPEAT_MS,
  HEARTBEAT_MS,
  SEND_STALL_MS,
} from '../core/limits.ts'
import { CHUNK_PAYLOAD_BYTES, writeChunk } from '../core/wire/chunker.ts'
import { helloFor, readLinkMessage, writeLinkMessage } from '../core/wire/link-message.ts'
import type { Lane } from './channel.ts'
import { createChannel } from './frame-channel.ts'
import { createMemoryWire } from './memory-link.ts'

describeChannelContract('memory', 'local', () => {
  const wire = createMemoryWire({ timers: createManualTimers() })
  return Promise.resolve({ a: wire.a, b: wire.b, close: () => wire.break('test over') })
})

/** Both channels over a wire that moves only when told to. */
function manualPair(attemptB = 1) {
  const timers = createManualTimers()
  const wire = createMemoryWire({ timers }, { manual: true })
  const tapA = tapLink(wire.a)
  const a = createChannel({ link: tapA.link, order: testOrder(true), timers })
  const b = createChannel({ link: wire.b, order: testOrder(false, attemptB), timers })
  const closes: string[] = []
  a.onClose((reason) => closes.push(`a ${reason}`))
  b.onClose((reason) => closes.push(`b ${reason}`))
  return { timers, wire, tapA, a, b, closes }
}

async function opened(pair: ReturnType<typeof manualPair>) {
  pair.wire.deliver()
  await Promise.all([pair.a.opened, pair.b.opened])
  pair.wire.deliver()
  return pair
}

describe('handshake', () => {
  test('HE1 sends nothing but hellos before both lanes answered, then what waited', async () => {
    const { wire, tapA, a, b } = manualPair()
    const got: number[] = []
    b.onFrame((frame) => got.push(frame.length))
    void a.send(new Uint8Array(10), 'bulk')
    void a.send(new Uint8Array(11), 'control')
    expect(tapA.sent.map(({ message }) => readLinkMessage(message).kind)).toEqual([
      'hello',
      'hello',
    ])
    wire.deliver()
    await a.opened
    wire.deliver()
    expect(got.toSorted()).toEqual([10, 11])
  })

  test('HE3 repeats its hellos until they are answered', async () => {
    const { timers, wire, tapA, a } = manualPair()
    await timers.advance(3 * HANDSHAKE_REPEAT_MS)
    expect(tapA.sent.length).toBe(8)
    wire.deliver()
    await a.opened
    const sent = tapA.sent.length
    await timers.advance(HANDSHAKE_REPEAT_MS)
    const kinds = tapA.sent.slice(sent).map(({ message }) => readLinkMessage(message).kind)
    expect(kinds).not.toContain('hello')
  })

  test('HE4 pays no attention to words of another attempt', async () => {
    const { timers, wire, a, closes } = manualPair(2)
    let open = false
    a.opened.then(
      () => (open = true),
      () => undefined,
    )
    for (let round = 0; round < 5; round += 1) {
      wire.deliver()
      await timers.advance(HANDSHAKE_REPEAT_MS)
    }
    expect(open).toBe(false)
    expect(closes).toEqual([])
    a.close('test over')
  })

  test('HE5 names another wire version and ends', async () => {
    const { wire, tapA, closes } = manualPair()
    tapA.inject(
      'control',
      writeLinkMessage({
        kind: 'hello',
        version: 99,
        lane: 'control',
        attempt: 1,
        windowBytes: CREDIT_BYTES,
      }),
    )
    wire.deliver()
    await settle()
    expect(closes).toContainEqual(expect.stringMatching(/^b protocol-mismatch: wire version 99/))
    expect(closes).toContainEqual(expect.stringMatching(/^a bye: protocol-mismatch/))
  })

  test('HE1 refuses a chunk before the hello', async () => {
    const timers = createManualTimers()
    const wire = createMemoryWire({ timers })
    const b = createChannel({ link: wire.b, order: testOrder(false), timers })
    const closes: string[] = []
    b.onClose((reason) => closes.push(reason))
    wire.a.send('bulk', writeChunk(new Uint8Array(4), 0, 0))
    await settle()
    expect(closes).toEqual(['bad-frame: bad chunk: before the hello'])
  })

  test('HE1 rejects opened when the link ends first', async () => {
    const { wire, a } = manualPair()
    wire.break('transport: gone')
    await expect(a.opened).rejects.toMatchObject({ code: 'link-closed' })
  })
})

describe('flow', () => {
  test('CR1 keeps at most its credit in flight, whatever is queued', async () => {
    const pair = await opened(manualPair())
    const bulkBytes = () =>
      pair.tapA.sent
        .filter(({ lane }) => lane === 'bulk')
        .reduce((sum, { message }) => sum + message.length, 0)
    const before = bulkBytes()
    void pair.a.send(new Uint8Array(3 * CREDIT_BYTES), 'bulk')
    expect(bulkBytes() - before).toBeGreaterThan(CREDIT_BYTES / 2)
    expect(bulkBytes() - before).toBeLessThanOrEqual(CREDIT_BYTES)
  })

  test('CR1 gives no credit for frames that nobody took', async () => {
    const pair = await opened(manualPair())
    const frame = new Uint8Array(CHUNK_PAYLOAD_BYTES)
    let done = 0
    for (let count = 0; count < 8; count += 1) {
      void pair.a.send(frame, 'bulk').then(() => (done += 1))
    }
    for (let round = 0; round < 5; round += 1) {
      pair.wire.deliver()
      await settle()
    }
    expect(done).toBe(Math.floor(CREDIT_BYTES / frame.length))
    let got = 0
    pair.b.onFrame(() => (got += 1))
    for (let round = 0; round < 5; round += 1) {
      pair.wire.deliver()
      await settle()
    }
    expect([done, got]).toEqual([8, 8])
  })

  test('CR4 ends the link when the other end stops taking data, with the code timeout', async () => {
    const { a, advance, closes } = await scripted()
    const outcomes: unknown[] = []
    a.send(new Uint8Array(3 * CREDIT_BYTES), 'bulk').catch((error: unknown) => outcomes.push(error))
    await advance(SEND_STALL_MS - 1_000)
    expect(closes).toEqual([])
    await advance(2_500)
    expect(closes).toEqual(['timeout: the other end stopped moving data'])
    expect(outcomes).toEqual([expect.objectContaining({ code: 'timeout' })])
  })

  test('CH6 ends the link when a frame breaks off in the middle', async () => {
    const { other, advance, closes } = await scripted()
    other.send('bulk', writeChunk(new Uint8Array(100_000), 0, 0))
    await advance(SEND_STALL_MS - 1_000)
    expect(closes).toEqual([])
    await advance(2_500)
    expect(closes).toEqual(['timeout: the other end stopped moving data'])
  })

  test('CR3 ends the link when the other end ignores the window', async () => {
    const { other, closes } = await scripted()
    // Nobody listens, so nothing is consumed and no credit is due.
    for (let number = 0; number < 5; number += 1) {
      other.send('bulk', writeChunk(new Uint8Array(60_000), number, 0))
    }
    await settle()
    expect(closes).toEqual([expect.stringMatching(/^bad-frame: bad flow/)])
  })

  test('CR5 waits while the transport holds too much back, and goes on when it drained', async () => {
    const { a, link, out } = await hollow()
    link.buffered = BUFFER_HIGH_BYTES + 1
    const before = out.length
    let done = false
    void a.send(new Uint8Array(10), 'bulk').then(() => (done = true))
    void a.send(new Uint8Array(10), 'control')
    await settle()
    expect([out.length - before, done]).toEqual([0, false])
    link.buffered = BUFFER_LOW_BYTES
    link.drain()
    await settle()
    expect([out.length - before, done]).toEqual([2, true])
  })

  test('CR5 looks at each heartbeat where a transport does not tell that it drained', async () => {
    const { a, link, timers } = await hollow()
    link.buffered = BUFFER_HIGH_BYTES + 1
    let done = false
    void a.send(new Uint8Array(10), 'bulk').then(() => (done = true))
    link.buffered = 0
    await timers.advance(HEARTBEAT_MS)
    expect(done).toBe(true)
  })

  test('CH7 ends the link when frames pile up before anybody listens', async () => {
    const { other, closes } = await scripted()
    for (let number = 0; number < 257; number += 1) {
      other.send('control', writeChunk(new Uint8Array(1), number, 0))
    }
    for (let turn = 0; turn < 20 && closes.length === 0; turn += 1) await settle()
    expect(closes).toEqual([expect.stringMatching(/^bad-frame: .*before anybody listens/)])
  })

  test('HB5 hears nothing after its close, even from a link that goes on', async () => {
    const { a, link } = await hollow()
    const frames: Uint8Array[] = []
    a.onFrame((frame) => frames.push(frame))
    link.receive('bulk', writeChunk(new Uint8Array(4), 0, 0))
    a.close('done')
    const received = a.stats().receivedBytes
    link.receive('bulk', writeChunk(new Uint8Array(4), 1, 0))
    expect(frames.length).toBe(1)
    expect(a.stats().receivedBytes).toBe(received)
  })
})

/** An open channel over a link with nothing behind it: the test is the transport. */
async function hollow() {
  const timers = createManualTimers()
  const out: { lane: Lane; message: Uint8Array }[] = []
  let receive: (lane: Lane, message: Uint8Array) => void = () => undefined
  let drain: () => void = () => undefined
  const link = {
    buffered: 0,
    receive: (lane: Lane, message: Uint8Array) => receive(lane, message),
    drain: () => drain(),
  }
  const a = createChannel({
    link: {
      path: 'local',
      send: (lane, message) => void out.push({ lane, message }),
      bufferedBytes: () => link.buffered,
      onDrain: (handler) => (drain = handler),
      onMessage: (handler) => (receive = handler),
      onClose: () => undefined,
      close: () => undefined,
    },
    order: testOrder(true),
    timers,
  })
  for (const lane of ['control', 'bulk'] as const) {
    receive(lane, helloFor(lane, 1, CREDIT_BYTES))
    receive(lane, writeLinkMessage({ kind: 'ack', lane, attempt: 1 }))
  }
  await a.opened
  return { a, link, out, timers }
}

/** A channel whose other end is a script: it shakes hands and answers pings, and does nothing else by itself. */
async function scripted() {
  const timers = createManualTimers()
  const wire = createMemoryWire({ timers })
  const a = createChannel({ link: wire.a, order: testOrder(true), timers })
  const closes: string[] = []
  a.onClose((reason) => closes.push(reason))
  const other = wire.b
  other.onMessage((lane, bytes) => {
    const message = readLinkMessage(bytes)
    if (message.kind === 'hello') {
      other.send(lane, bytes)
      other.send(lane, writeLinkMessage({ kind: 'ack', lane, attempt: message.attempt }))
    } else if (message.kind === 'ping') {
      other.send(lane, writeLinkMessage({ kind: 'pong', number: message.number }))
    }
  })
  await a.opened
  return { a, other, closes, advance: timers.advance }
}

describe('life and death', () => {
  test('HB3 forgives the silence that it slept through', async () => {
    const pair = await opened(manualPair())
    // The machine sleeps for an hour: the clock jumps and both timers fire late.
    pair.timers.sleep(3_600_000)
    await pair.timers.advance(1)
    pair.wire.deliver()
    for (let beat = 0; beat < 10; beat += 1) {
      await pair.timers.advance(500)
      pair.wire.deliver()
    }
    expect(pair.closes).toEqual([])
    pair.wire.cut()
    await pair.timers.advance(5_000)
    expect(pair.closes.length).toBe(2)
  })

  test('HB4 answers a ping at once, without a timer', async () => {
    const pair = await opened(manualPair())
    const before = pair.tapA.sent.length
    pair.wire.b.send('control', writeLinkMessage({ kind: 'ping', number: 77 }))
    pair.wire.deliver()
    expect(readLinkMessage(pair.tapA.sent[before]!.message)).toEqual({ kind: 'pong', number: 77 })
  })

  test('HB5 tells the reason of a close to the other end', async () => {
    const pair = await opened(manualPair())
    pair.a.close('leaving')
    pair.wire.deliver()
    expect(pair.closes).toEqual(['a leaving', 'b bye: leaving'])
  })
})

describe('memory wire', () => {
  test('CH1 carries with the latency it was given, in order', async () => {
    const timers = createManualTimers()
    const wire = createMemoryWire({ timers }, { latencyMs: 20 })
    const got: number[] = []
    wire.b.onMessage((_lane, message) => got.push(message[0]!))
    for (const value of [1, 2, 3]) wire.a.send('bulk', Uint8Array.of(value))
    await timers.advance(19)
    expect(got).toEqual([])
    await timers.advance(1)
    expect(got).toEqual([1, 2, 3])
  })
})
