import { afterEach, describe, expect, test } from 'vitest'
import type { PairId, PeerId } from '../../sdk/core/ids.ts'
import { CREDIT_BYTES, DEAD_MS, FRAME_MAX_BYTES } from '../../sdk/core/limits.ts'
import { createChannel, type FrameChannel } from '../../sdk/net/frame-channel.ts'
import type { ChannelPath, Link } from '../../sdk/net/channel.ts'
import { createManualTimers, type ManualTimers } from '../support/manual-timers.ts'
import { tapLink, type LinkTap } from '../support/link-tap.ts'

export type LinkPair = { readonly a: Link; readonly b: Link; close(): void }

type Ends = {
  a: FrameChannel
  b: FrameChannel
  tapA: LinkTap
  tapB: LinkTap
  /** Drives heartbeats only: the links move by themselves. */
  timers: ManualTimers
  /** Collected frames and close reasons of each end. */
  framesB: Uint8Array[]
  closesA: string[]
  closesB: string[]
}

/**
 * What every channel does, whatever link is below. `make` gives both ends of an open link that moves by itself.
 */
export function describeChannelContract(
  name: string,
  expectedPath: ChannelPath,
  make: () => Promise<LinkPair>,
): void {
  describe(`channel contract: ${name}`, () => {
    const cleanups: (() => void)[] = []
    afterEach(() => {
      for (const cleanup of cleanups.splice(0)) cleanup()
    })

    async function open(): Promise<Ends> {
      const pair = await make()
      cleanups.push(() => pair.close())
      const ends = join(pair)
      cleanups.push(
        () => ends.a.close('test over'),
        () => ends.b.close('test over'),
      )
      await Promise.all([ends.a.opened, ends.b.opened])
      return ends
    }

    test('HE1 opens after hello and ack on both lanes, and tells its path', async () => {
      const { a, b } = await open()
      expect([a.path, b.path]).toEqual([expectedPath, expectedPath])
    })

    test('CH1 delivers frames whole and in order, whatever their size', async () => {
      const { a, framesB } = await open()
      const sizes = [1, 48, 65_000, 65_536, 300_001, 7, 1_500_000, 4_096]
      const frames = sizes.map((size, index) => pattern(size, index))
      await Promise.all(frames.map((frame) => a.send(frame, 'bulk')))
      await expect.poll(() => framesB.length, POLL).toBe(frames.length)
      for (const [index, frame] of frames.entries()) {
        expect(same(framesB[index]!, frame), `frame ${index}`).toBe(true)
      }
    })

    test('CH2 refuses a frame above the size limit and stays usable', async () => {
      const { a, framesB } = await open()
      await expect(a.send(new Uint8Array(FRAME_MAX_BYTES + 1), 'bulk')).rejects.toMatchObject({
        code: 'bad-frame',
      })
      await expect(a.send(new Uint8Array(70_000), 'control')).rejects.toMatchObject({
        code: 'bad-frame',
      })
      await a.send(pattern(10, 1), 'bulk')
      await expect.poll(() => framesB.length, POLL).toBe(1)
    })

    test('CR1 holds the sender back until the receiver consumed', async () => {
      const { a, b, tapA } = await open()
      const frames = Array.from({ length: 24 }, (_, index) => pattern(60_000, index))
      // Frames in the inbox aren't consumed, so no credit comes back.
      b.onFrame(() => undefined)
      const bytesOut = () =>
        tapA.sent
          .filter(({ lane }) => lane === 'bulk')
          .reduce((sum, m) => sum + m.message.length, 0)
      let done = 0
      for (const frame of frames) void a.send(frame, 'bulk').then(() => (done += 1))
      expect(bytesOut()).toBeLessThanOrEqual(CREDIT_BYTES + 100)
      expect(done).toBeLessThan(frames.length)
      await expect.poll(() => done, POLL).toBe(frames.length)
    })

    test('CR2 lets control overtake queued bulk', async () => {
      const { a, b } = await open()
      const order: string[] = []
      b.onFrame((frame) => order.push(frame.length > 100 ? 'bulk' : 'control'))
      const bulk = a.send(pattern(4_000_000, 1), 'bulk')
      await a.send(pattern(48, 2), 'control')
      await bulk
      await expect.poll(() => order.length, POLL).toBe(2)
      expect(order).toEqual(['control', 'bulk'])
    })

    test('CH3 sends a small frame at once, as one message', async () => {
      const { a, tapA } = await open()
      const before = tapA.sent.length
      const sending = a.send(pattern(4_144, 1), 'bulk')
      expect(tapA.sent.length).toBe(before + 1)
      await sending
    })

    test('HB1 measures the round trip and counts bytes', async () => {
      const { a, b, framesB } = await open()
      await a.send(pattern(1_000, 1), 'bulk')
      await expect.poll(() => framesB.length, POLL).toBe(1)
      await expect.poll(() => a.stats().rttMs, POLL).not.toBeNull()
      expect(a.stats().sentBytes).toBeGreaterThan(1_000)
      expect(b.stats().receivedBytes).toBeGreaterThan(1_000)
    })

    test('HB2 ends after silence, on both sides, each with the reason', async () => {
      const ends = await open()
      ends.tapA.cut()
      for (let beat = 0; beat < 40 && ends.closesB.length === 0; beat += 1) {
        await ends.timers.advance(DEAD_MS / 10)
      }
      expect(ends.closesA[0]).toMatch(/^silence/)
      expect(ends.closesB[0]).toMatch(/^silence|^transport|^bye/)
      await expect(ends.a.send(pattern(5, 1), 'bulk')).rejects.toMatchObject({
        code: 'link-closed',
      })
    })

    test('HB5 closes on both ends, once each, and nothing arrives afterwards', async () => {
      const ends = await open()
      ends.b.close('leaving')
      ends.b.close('leaving twice')
      await expect.poll(() => ends.closesA.length, POLL).toBe(1)
      expect(ends.closesB).toEqual(['leaving'])
      expect(ends.closesA[0]).toMatch(/^bye: leaving|^transport/)
      await expect(ends.a.send(pattern(5, 1), 'bulk')).rejects.toMatchObject({
        code: 'link-closed',
      })
      await expect(ends.b.send(pattern(5, 1), 'bulk')).rejects.toMatchObject({
        code: 'link-closed',
      })
      expect(ends.framesB).toEqual([])
    })

    test('HB5 rejects what was still queued when the link ends', async () => {
      const { a, b } = await open()
      const sending = a.send(pattern(8_000_000, 1), 'bulk')
      const outcome = expect(sending).rejects.toMatchObject({ code: 'link-closed' })
      b.close('enough')
      await outcome
    })

    for (const [what, lane, bytes] of GARBAGE) {
      test(`CH4 closes on garbage: ${what}`, async () => {
        const ends = await open()
        ends.tapA.inject(lane, bytes)
        await expect.poll(() => ends.closesB.length, POLL).toBe(1)
        expect(ends.closesB[0]).toMatch(/^bad-frame: /)
        await expect.poll(() => ends.closesA.length, POLL).toBe(1)
        expect(ends.framesB).toEqual([])
      })
    }

    test('CH5 closes when the listener refuses a frame, and names why', async () => {
      const ends = await open()
      ends.b.onFrame(() => {
        throw new Error('listener says no')
      })
      await ends.a.send(pattern(50, 1), 'bulk')
      await expect.poll(() => ends.closesB[0], POLL).toMatch(/listener says no/)
    })

    test('HB6 leaves no timer behind', async () => {
      const ends = await open()
      ends.a.close('done')
      ends.b.close('done')
      await expect.poll(() => ends.timers.pending, POLL).toBe(0)
    })
  })
}

const POLL = { timeout: 10_000, interval: 5 }

const GARBAGE: readonly (readonly [string, 'control' | 'bulk', Uint8Array])[] = [
  ['an unknown kind', 'control', new Uint8Array([99, 0, 0, 0])],
  ['an empty chunk', 'bulk', new Uint8Array([3, 0, 0, 0])],
  ['a chunk that lies about its total', 'bulk', chunkWith({ number: 0, offset: 0, total: 2 })],
  ['a chunk of a frame beyond the limit', 'bulk', chunkWith({ total: FRAME_MAX_BYTES + 1 })],
  ['a frame out of order', 'bulk', chunkWith({ number: 5, offset: 0, total: 8 })],
  ['an offset out of order', 'bulk', chunkWith({ number: 0, offset: 8, total: 16 })],
  ['a ping on the bulk lane', 'bulk', new Uint8Array([5, 0, 0, 0, 1, 0, 0, 0])],
  ['credit for what was never sent', 'control', new Uint8Array([4, 0, 0, 0, 0, 0, 0, 1])],
]

function chunkWith(fields: { number?: number; offset?: number; total: number }): Uint8Array {
  const bytes = new Uint8Array(24)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, 3)
  view.setUint32(4, fields.number ?? 0, true)
  view.setUint32(8, fields.offset ?? 0, true)
  view.setUint32(12, fields.total, true)
  return bytes
}

function join(pair: LinkPair): Ends {
  const timers = createManualTimers()
  const tapA = tapLink(pair.a)
  const tapB = tapLink(pair.b)
  // Names that a test chooses are ids without a parser.
  const order = (peer: string) => ({ pair: 'pair-1' as PairId, peer: peer as PeerId, attempt: 1 })
  const a = createChannel({ link: tapA.link, order: order('b'), timers })
  const b = createChannel({ link: tapB.link, order: order('a'), timers })
  const ends: Ends = { a, b, tapA, tapB, timers, framesB: [], closesA: [], closesB: [] }
  b.onFrame((frame) => ends.framesB.push(frame.slice()))
  a.onClose((reason) => ends.closesA.push(reason))
  b.onClose((reason) => ends.closesB.push(reason))
  return ends
}

/** Bytes that tell their place, so that a swap or a gap is seen. */
function pattern(size: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(size)
  for (let index = 0; index < size; index += 1)
    bytes[index] = (index * 31 + (index >> 8) + seed) & 255
  return bytes
}

function same(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index])
}
