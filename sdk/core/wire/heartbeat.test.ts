import { expect, test } from 'vitest'
import { DEAD_MS, HEARTBEAT_MS, SUSPECT_MS } from '../limits.ts'
import { createHeartbeat } from './heartbeat.ts'

test('HB2 goes from alive to suspect to dead by silence alone', () => {
  const heartbeat = createHeartbeat(0)
  expect(heartbeat.tick(HEARTBEAT_MS)).toBe('alive')
  expect(heartbeat.tick(SUSPECT_MS)).toBe('suspect')
  expect(heartbeat.tick(DEAD_MS)).toBe('dead')
})

test('HB2 takes any message as a sign of life', () => {
  const heartbeat = createHeartbeat(0)
  heartbeat.tick(1_000)
  heartbeat.tick(2_000)
  heartbeat.heard(2_900)
  expect(heartbeat.tick(3_000)).toBe('alive')
  expect(heartbeat.tick(4_000)).toBe('alive')
  expect(heartbeat.nextTickMs(5_500)).toBe(400)
})

test('HB3 excuses one silence that this device slept through, and only one', () => {
  const heartbeat = createHeartbeat(0)
  heartbeat.tick(1_000)
  expect(heartbeat.tick(600_000)).toBe('suspect')
  expect(heartbeat.tick(601_000)).toBe('alive')
  expect(heartbeat.tick(603_000)).toBe('dead')
})

test('HB3 finds a dead end even with a timer that fires once a minute', () => {
  const heartbeat = createHeartbeat(0)
  expect(heartbeat.tick(60_000)).toBe('suspect')
  expect(heartbeat.tick(120_000)).toBe('dead')
  const other = createHeartbeat(0)
  expect(other.tick(60_000)).toBe('suspect')
  other.heard(61_000)
  expect(other.tick(120_000)).toBe('suspect')
})

test('HB1 smooths the round trip and ignores answers to nothing', () => {
  const heartbeat = createHeartbeat(0)
  expect(heartbeat.rttMs).toBeNull()
  heartbeat.pong(0, 5)
  heartbeat.pong(1, 5)
  heartbeat.pong(0xffff_ffff, 5)
  expect(heartbeat.rttMs).toBeNull()
  const first = heartbeat.ping(100)
  heartbeat.pong(first, 108)
  expect(heartbeat.rttMs).toBe(8)
  const second = heartbeat.ping(200)
  heartbeat.pong(second, 204)
  expect(heartbeat.rttMs).toBe(7)
  for (let count = 0; count < 8; count += 1) heartbeat.ping(300)
  heartbeat.pong(second, 9_000)
  expect(heartbeat.rttMs).toBe(7)
})
