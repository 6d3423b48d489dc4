import { expect, test } from 'vitest'
import { CHUNK_BYTES, CREDIT_BYTES } from '../limits.ts'
import { createReceiveWindow, createSendWindow } from './credits.ts'

test('CR1 gives nothing before the hello and never more than the smaller limit', () => {
  const window = createSendWindow(CREDIT_BYTES)
  expect(window.free).toBe(0)
  window.open(2 * CHUNK_BYTES)
  expect(window.free).toBe(2 * CHUNK_BYTES)
  window.sent(CHUNK_BYTES)
  expect(window.free).toBe(CHUNK_BYTES)
  window.granted(CHUNK_BYTES)
  expect(window.free).toBe(2 * CHUNK_BYTES)
})

test('CR3 refuses a window too small to work with, and credit for what was never sent', () => {
  const window = createSendWindow(CREDIT_BYTES)
  expect(() => window.open(CHUNK_BYTES)).toThrow(/window/)
  window.open(CREDIT_BYTES)
  window.sent(100)
  expect(() => window.granted(101)).toThrow(/credit/)
  window.granted(100)
  expect(() => window.granted(99)).toThrow(/credit/)
})

test('CR3 refuses a sender that ignores its window', () => {
  const window = createReceiveWindow(2 * CHUNK_BYTES)
  window.received(2 * CHUNK_BYTES)
  expect(() => window.received(1)).toThrow(/bad flow/)
})

test('CR1 never stalls, whatever the size of the messages and the smaller window', () => {
  for (const bytes of [97, 4_160, 30_000, CHUNK_BYTES - 8]) {
    for (const own of [2 * CHUNK_BYTES, CREDIT_BYTES]) {
      const { free, fill } = connect(own)
      for (let round = 0; round < 300; round += 1) {
        expect(free(), `${bytes} of ${own}`).toBeGreaterThanOrEqual(bytes)
        fill(bytes)
      }
    }
  }
})

test('CR1 counts modulo 2^32: nothing changes after four gigabytes', () => {
  const { free, fill, totalBytes } = connect(CREDIT_BYTES)
  const bytes = CHUNK_BYTES - 8
  while (totalBytes() < 2 ** 32 + 10 * CREDIT_BYTES) {
    if (free() < bytes) expect.fail(`stalled after ${totalBytes()} bytes`)
    fill(bytes)
  }
})

/** Both halves; fill() sends all that may go, then consumes all of it. */
function connect(own: number) {
  const sender = createSendWindow(own)
  const receiver = createReceiveWindow(CREDIT_BYTES)
  sender.open(CREDIT_BYTES)
  let totalBytes = 0
  return {
    free: () => sender.free,
    totalBytes: () => totalBytes,
    fill(bytes: number) {
      let count = 0
      for (; sender.free >= bytes; count += 1) {
        sender.sent(bytes)
        receiver.received(bytes)
        totalBytes += bytes
      }
      for (; count > 0; count -= 1) {
        const total = receiver.consumed(bytes)
        if (total !== null) sender.granted(total)
      }
    },
  }
}
