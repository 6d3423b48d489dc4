import { expect, test } from 'vitest'
import { createLinkEvents } from './link-events.ts'

test('HE6 keeps messages that come before anybody listens, in order, and not without end', () => {
  const events = createLinkEvents()
  const got: number[] = []
  for (const value of [1, 2, 3]) events.message('bulk', Uint8Array.of(value))
  events.onMessage((_lane, message) => got.push(message[0]!))
  events.message('bulk', Uint8Array.of(4))
  expect(got).toEqual([1, 2, 3, 4])

  const flooded = createLinkEvents()
  for (let count = 0; count < 65; count += 1) flooded.message('control', new Uint8Array(1))
  expect(flooded.closed).toBe(true)
})

test('HB5 says close once, with the first reason, also to a late listener', () => {
  const events = createLinkEvents()
  const early: string[] = []
  events.onClose((reason) => early.push(reason))
  events.close('first')
  events.close('second')
  const late: string[] = []
  events.onClose((reason) => late.push(reason))
  events.message('bulk', new Uint8Array(1))
  events.drain()
  expect([early, late]).toEqual([['first'], ['first']])
})
