import { afterEach, expect, test } from 'vitest'
import { createSignalingHub, testOrder } from '../../test/support/signaling-hub.ts'
import type { SessionId } from '../core/ids.ts'
import { decodeFrame, encodeFrame, type ActivationFrame } from '../core/wire/frame.ts'
import type { Channel } from './channel.ts'
import { createConnector } from './connector.ts'
import type { MakePeerLink } from './peer-link.ts'
import { createBrowserPeerLinks } from './simple-peer.browser.ts'
import { createSystemTimers } from './timers.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

function connectBoth(makeA: MakePeerLink | null, makeB: MakePeerLink | null) {
  const hub = createSignalingHub(testOrder(true).pair)
  const timers = createSystemTimers()
  const { signal } = new AbortController()
  const connectors = [
    createConnector({ signaling: hub.a.signaling, makePeerLink: makeA, timers }),
    createConnector({ signaling: hub.b.signaling, makePeerLink: makeB, timers }),
  ] as const
  hub.a.attach(connectors[0])
  hub.b.attach(connectors[1])
  cleanups.push(...connectors.map((connector) => () => connector.close()))
  const channels = Promise.all([
    connectors[0].connect(testOrder(true), signal),
    connectors[1].connect(testOrder(false), signal),
  ])
  return { hub, channels }
}

// A number that a test chooses is a session without a parser.
const head = { session: 1 as SessionId, epoch: 0, step: 0, position: 0, computeMicros: 0 }

function activation(tokenCount: number, hiddenSize: number): ActivationFrame {
  const data = Float32Array.from({ length: tokenCount * hiddenSize }, (_, index) => index / 7)
  return { kind: 'activation', ...head, tokenCount, hiddenSize, sample: true, data }
}

/** Sends a small and a large activation both ways and compares every float. */
async function carries(from: Channel, to: Channel): Promise<void> {
  const got: unknown[] = []
  to.onFrame((bytes) => got.push(decodeFrame(bytes, { hiddenSize: 1_024, maxTokens: 64 })))
  const frames = [activation(1, 1_024), activation(64, 1_024)]
  for (const frame of frames) await from.send(encodeFrame(frame), 'bulk')
  await expect.poll(() => got.length, POLL).toBe(2)
  expect(got).toEqual(frames)
}

test('PA4 links two peers directly over WebRTC, with nothing through the host', async () => {
  const { hub, channels } = connectBoth(createBrowserPeerLinks(), createBrowserPeerLinks())
  const [a, b] = await channels
  expect([a.path, b.path]).toEqual(['direct', 'direct'])
  await carries(a, b)
  await carries(b, a)
  expect(hub.a.relayedBytes + hub.b.relayedBytes).toBe(0)
})

test('PA5 brings both ends to the relay when one has no WebRTC', async () => {
  const { hub, channels } = connectBoth(createBrowserPeerLinks(), null)
  const [a, b] = await channels
  expect([a.path, b.path]).toEqual(['relay', 'relay'])
  await carries(a, b)
  expect(hub.a.relayedBytes).toBeGreaterThan(64 * 1_024 * 4)
})

test('PA5 goes to the relay at once when gathering finds no candidate', async () => {
  // Relay-only without a TURN server: no candidate, as where WebRTC is forbidden.
  const forbid =
    (make: MakePeerLink | null): MakePeerLink =>
    (deps) => {
      const original = globalThis.RTCPeerConnection
      globalThis.RTCPeerConnection = class extends original {
        constructor(config?: RTCConfiguration) {
          super({ ...config, iceTransportPolicy: 'relay' })
        }
      }
      try {
        return make!(deps)
      } finally {
        globalThis.RTCPeerConnection = original
      }
    }
  const started = performance.now()
  const { channels } = connectBoth(
    forbid(createBrowserPeerLinks()),
    forbid(createBrowserPeerLinks()),
  )
  const [a, b] = await channels
  expect([a.path, b.path]).toEqual(['relay', 'relay'])
  // One direct try alone would take longer.
  expect(performance.now() - started).toBeLessThan(4_500)
})

test('HB5 tells the other page at once when a channel closes', async () => {
  const { channels } = connectBoth(createBrowserPeerLinks(), createBrowserPeerLinks())
  const [a, b] = await channels
  const reasons: string[] = []
  b.onClose((reason) => reasons.push(reason))
  a.close('leaving')
  await expect.poll(() => reasons.length, { timeout: 2_000, interval: 5 }).toBe(1)
  // The transport's own close may be faster than the goodbye.
  expect(reasons[0]).toMatch(/^bye: leaving$|^transport: /)
})

const POLL = { timeout: 10_000, interval: 5 }
