import { afterAll, expect, test } from 'vitest'
import { describeChannelContract, type LinkPair } from '../../test/contracts/channel.contract.ts'
import { createSignalingHub, testOrder } from '../../test/support/signaling-hub.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import type { PairOrder } from './channel.ts'
import { createConnector } from './connector.ts'
import type { MakePeerLink, PeerTry } from './peer-link.ts'
import { NODE_CREDIT_BYTES, openNodePeerLinks } from './simple-peer.node.ts'
import { createSystemTimers } from './timers.ts'

const log: string[] = []
/** Loopback only, as on a machine without a network: no test needs one. */
const links = await openNodePeerLinks({ log: (line) => log.push(line), addresses: () => ({}) })
afterAll(() => links.close())

describeChannelContract('simple-peer over node-datachannel', 'direct', () => connectPair())

test('PA7 refuses nothing silently: a broken signal fails the try', async () => {
  const attempt = begin(true, () => undefined, [])
  attempt.accept({ nonsense: true })
  await expect(attempt.link).rejects.toMatchObject({ code: 'link-closed' })
})

test('PA7 uses no ICE server but the ones of its order, and passes over those that it cannot use', async () => {
  const signals: unknown[] = []
  const { close } = await connectPair(
    [
      { urls: 'stuns:example.org:5349' },
      { urls: 'turn:example.org:3478?transport=tcp', username: 'a', credential: 'b' },
    ],
    (signal) => signals.push(signal),
  )
  close()
  expect(JSON.stringify(signals)).toContain('typ host')
  expect(JSON.stringify(signals)).not.toMatch(/srflx|typ relay/)
})

test('PA4 connects however late the answer is: nothing is lost on a slow way through the host', async () => {
  const waitMs = [0, 30, 120]
  for (const [there, back] of waitMs.flatMap((ms) => waitMs.map((other) => [ms, other] as const))) {
    const ends: { left?: PeerTry; right?: PeerTry } = {}
    const later = (ms: number, to: 'left' | 'right') => (signal: unknown) =>
      setTimeout(() => ends[to]?.accept(copy(signal)), ms)
    Object.assign(ends, {
      left: begin(true, later(there, 'right'), []),
      right: begin(false, later(back, 'left'), []),
    })
    await expect(Promise.all([ends.left?.link, ends.right?.link])).resolves.toHaveLength(2)
    ends.left?.close()
    ends.right?.close()
  }
})

test('HB5 tells the other process at once when its end closes', async () => {
  const { a, b, close } = await connectPair()
  const reasons: string[] = []
  a.onClose((reason) => reasons.push(reason))
  b.close('leaving')
  await expect.poll(() => reasons.length, { interval: 5 }).toBe(1)
  close()
})

test('CR1 a Node end asks for no more than 128 KiB in flight', () => {
  expect(NODE_CREDIT_BYTES).toBe(131_072)
})

test('PA5 without the native library the relay carries everything, and the log says so once', async () => {
  const lines: string[] = []
  const none = await openNodePeerLinks({
    log: (line) => lines.push(line),
    load: () => Promise.reject(new Error('no binary for this machine')),
  })
  expect(none.makePeerLink).toBeNull()
  const hub = createSignalingHub(testOrder(true).pair)
  const timers = createSystemTimers()
  const makers = [none.makePeerLink, maker()] as const
  const [left, right] = makers.map((makePeerLink, index) =>
    createConnector(
      { signaling: (index === 0 ? hub.a : hub.b).signaling, makePeerLink, timers },
      { creditBytes: NODE_CREDIT_BYTES },
    ),
  )
  if (left === undefined || right === undefined) throw new Error('two were made')
  hub.a.attach(left)
  hub.b.attach(right)
  const { signal } = new AbortController()
  const [a, b] = await Promise.all([
    left.connect(testOrder(true), signal),
    right.connect(testOrder(false), signal),
  ])
  expect([a.path, b.path]).toEqual(['relay', 'relay'])
  const got: number[] = []
  b.onFrame((frame) => got.push(frame.length))
  await a.send(new Uint8Array(300_000), 'bulk')
  await expect.poll(() => got).toEqual([300_000])
  left.close()
  right.close()
  none.close()
  expect(lines).toEqual([expect.stringContaining('no binary for this machine')])
  expect(log).toEqual([])
})

function maker(): MakePeerLink {
  if (links.makePeerLink === null) throw new Error(`no WebRTC here: ${log.join()}`)
  return links.makePeerLink
}

async function connectPair(
  iceServers: PairOrder['iceServers'] = [],
  onSignal: (signal: unknown) => void = () => undefined,
): Promise<LinkPair> {
  const ends: { left?: PeerTry; right?: PeerTry } = {}
  const pass = (to: 'left' | 'right') => (signal: unknown) => {
    onSignal(signal)
    ends[to]?.accept(copy(signal))
  }
  const left = begin(true, pass('right'), iceServers)
  const right = begin(false, pass('left'), iceServers)
  Object.assign(ends, { left, right })
  const [a, b] = await Promise.all([left.link, right.link])
  return {
    a,
    b,
    close() {
      left.close()
      right.close()
    },
  }
}

function begin(
  initiator: boolean,
  onSignal: (signal: unknown) => void,
  iceServers: PairOrder['iceServers'],
): PeerTry {
  const order: PairOrder = {
    // Names that a test chooses are ids without a parser.
    pair: 'pair-1' as PairId,
    peer: 'other' as PeerId,
    initiator,
    attempt: 1,
    iceServers,
  }
  return maker()({ order, onSignal })
}

/** As through a server: JSON. */
function copy(signal: unknown): unknown {
  return JSON.parse(JSON.stringify(signal))
}
