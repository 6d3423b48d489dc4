import { expect, test } from 'vitest'
import type { PairId } from '../sdk/core/ids.ts'
import { CHUNK_BYTES, RELAY_BYTES_PER_SECOND, RELAY_QUEUE_BYTES } from '../sdk/core/limits.ts'
import { createRelayQueue } from './relay-queue.ts'
import { createTokenBucket } from './token-bucket.ts'

const pair = 'p' as PairId

function queue() {
  const forwarded: number[] = []
  const state = { now: 0, overflows: 0, due: null as null | { at: number; task: () => void } }
  const relay = createRelayQueue({
    forward: (_pair, bytes) => forwarded.push(bytes[0] ?? 0),
    onOverflow: () => (state.overflows += 1),
    now: () => state.now,
    later(ms, task) {
      state.due = { at: state.now + ms, task }
      return () => (state.due = null)
    },
  })
  return { relay, forwarded, state }
}

test('RL6 what is over the share waits, in order, and nothing is dropped', () => {
  const { relay, forwarded, state } = queue()
  const chunks = RELAY_BYTES_PER_SECOND / CHUNK_BYTES + 10
  for (let index = 0; index < chunks; index++)
    relay.push(pair, new Uint8Array(CHUNK_BYTES).fill(index & 255))
  expect(forwarded).toHaveLength(chunks - 10)
  while (state.due) {
    const { at, task } = state.due
    state.now = at
    state.due = null
    task()
  }
  expect(forwarded).toEqual(Array.from({ length: chunks }, (_, index) => index & 255))
  expect(state.now).toBeGreaterThan(15)
  expect(state.now).toBeLessThan(40)
  expect(state.overflows).toBe(0)
})

test('RL6 a peer that ignores its credits overflows', () => {
  const { relay, state } = queue()
  const chunks = (RELAY_BYTES_PER_SECOND + RELAY_QUEUE_BYTES) / CHUNK_BYTES
  for (let index = 0; index <= chunks; index++) relay.push(pair, new Uint8Array(CHUNK_BYTES))
  expect(state.overflows).toBe(1)
})

test('RL6 empty messages do not wait without end', () => {
  const { relay, state } = queue()
  const messages = (RELAY_BYTES_PER_SECOND + RELAY_QUEUE_BYTES) / 1_024
  for (let index = 0; index < messages; index++) relay.push(pair, new Uint8Array(0))
  expect(state.overflows).toBe(0)
  relay.push(pair, new Uint8Array(0))
  expect(state.overflows).toBe(1)
})

test('closing forgets what waits', () => {
  const { relay, forwarded, state } = queue()
  for (let index = 0; index < 600; index++) relay.push(pair, new Uint8Array(CHUNK_BYTES))
  const count = forwarded.length
  relay.close()
  expect(state.due).toBeNull()
  relay.push(pair, new Uint8Array(1))
  expect(forwarded).toHaveLength(count)
})

test('a bucket averages a rate and allows bursts', () => {
  let now = 0
  const bucket = createTokenBucket({ perSecond: 10, burst: 5 }, () => now)
  expect([1, 2, 3, 4, 5, 6].map(() => bucket.take(1))).toEqual([
    true,
    true,
    true,
    true,
    true,
    false,
  ])
  expect(bucket.waitMs(1)).toBe(100)
  expect(bucket.waitMs(6)).toBe(Infinity)
  now = 100
  expect(bucket.take(1)).toBe(true)
  now = 60_000
  expect(bucket.take(5)).toBe(true)
  expect(bucket.take(1)).toBe(false)
})
