import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import { portEnd } from '../port-end.browser.ts'
import type { Link, PairOrder } from './channel.ts'
import { createDistantLanes, type DistantLanes } from './distant-lanes.ts'
import { createChannel, type FrameChannel } from './frame-channel.ts'
import type { LaneNews, LaneOrder } from './lane-messages.ts'
import type { PeerTry } from './peer-link.ts'
import { createBrowserPeerLinks } from './simple-peer.browser.ts'
import { createSystemTimers } from './timers.ts'

describe('a link whose frames go to another thread', () => {
  const timers = createSystemTimers()
  let thread: Worker
  let lanes: DistantLanes
  let tries: PeerTry[] = []

  beforeEach(() => {
    thread = new Worker(new URL('../../test/support/echo-lane-thread.ts', import.meta.url), {
      type: 'module',
    })
    const { port1, port2 } = new MessageChannel()
    thread.postMessage(null, [port2])
    lanes = createDistantLanes(timers)
    lanes.attach(portEnd<LaneOrder, LaneNews>(port1))
  })
  afterEach(() => {
    for (const attempt of tries) attempt.close()
    tries = []
    thread.terminate()
  })

  /** `far`: its frames are echoed by the thread; `near`: its frames pass the page. */
  async function links(): Promise<{ far: Link; near: Link }> {
    const ends: { far?: PeerTry; near?: PeerTry } = {}
    const begin = (initiator: boolean, other: 'far' | 'near', own?: DistantLanes): PeerTry => {
      const order: PairOrder = {
        // Names that a test chooses are ids without a parser. The echo reads its lane from the peer.
        pair: 'pair-1' as PairId,
        peer: '1' as PeerId,
        initiator,
        attempt: 1,
        iceServers: [],
      }
      const onSignal = (signal: unknown) =>
        ends[other]?.accept(JSON.parse(JSON.stringify(signal)) as unknown)
      const attempt = createBrowserPeerLinks(own)?.({ order, onSignal })
      if (attempt === undefined) throw new Error('this browser has no WebRTC')
      tries.push(attempt)
      return attempt
    }
    ends.far = begin(true, 'near', lanes)
    ends.near = begin(false, 'far')
    const [far, near] = await Promise.all([ends.far.link, ends.near.link])
    return { far, near }
  }

  async function channels() {
    const { far, near } = await links()
    const open = (link: Link): FrameChannel =>
      createChannel({
        link,
        order: { pair: 'pair-1' as PairId, peer: 'other' as PeerId, attempt: 1 },
        timers,
      })
    const both = { far: open(far), near: open(near), link: near }
    const closed = { far: '', near: '' }
    for (const end of ['far', 'near'] as const)
      both[end].onClose((reason) => {
        closed[end] = reason
      })
    await Promise.all([both.far.opened, both.near.opened])
    return { ...both, closed }
  }

  const bytesOf = (length: number) => Uint8Array.from({ length }, (_, index) => (index * 7) & 255)

  test('CH1 carries small and large frames there and back, whole and in order', async () => {
    const { far, near } = await channels()
    expect(far.lane).toBe(1)
    expect(near.lane).toBeNull()
    const back: Uint8Array[] = []
    near.onFrame((frame) => back.push(frame.slice()))
    // More than the credit of both ends together.
    const sent = [bytesOf(10), bytesOf(1_500_000), bytesOf(70_000), bytesOf(1)]
    for (const frame of sent) await near.send(frame, 'bulk')
    await expect.poll(() => back.length, { timeout: 20_000 }).toBe(sent.length)
    const same = back.map((frame, index) => frame.every((byte, at) => byte === sent[index]?.[at]))
    expect(same).toEqual(sent.map(() => true))
    expect(back.map(({ length }) => length)).toEqual(sent.map(({ length }) => length))
    await expect
      .poll(() => far.stats().receivedBytes, { timeout: 5_000 })
      .toBeGreaterThan(1_570_000)
    expect(far.stats().rttMs).not.toBeNull()
  })

  test('frames do not pass the page, so it can not send one', async () => {
    const { far } = await channels()
    await expect(far.send(bytesOf(3), 'bulk')).rejects.toMatchObject({ code: 'internal' })
  })

  test('a malformed chunk closes the link, and the other end hears why', async () => {
    const { closed, link } = await channels()
    link.send('bulk', Uint8Array.of(3, 0, 0, 0))
    await expect.poll(() => closed.far).toContain('bad-frame')
    await expect.poll(() => closed.near).toContain('bad-frame')
  })

  test('HE1 a chunk before the hello is a bad frame', async () => {
    const { far, near } = await links()
    let reason = ''
    const channel = createChannel({
      link: far,
      order: { pair: 'pair-1' as PairId, peer: 'other' as PeerId, attempt: 1 },
      timers,
    })
    channel.onClose((because) => {
      reason = because
    })
    const chunk = new Uint8Array(17)
    chunk[0] = 3
    chunk[12] = 1
    near.send('bulk', chunk)
    await expect.poll(() => reason).toContain('before the hello')
  })

  test('HE1 a lane that failed before its channel was made ends it at once', async () => {
    const { far, near } = await links()
    const chunk = new Uint8Array(17)
    chunk[0] = 3
    near.send('bulk', chunk)
    // The thread has answered when a later message was: a hello comes back as it is.
    const heard: number[] = []
    far.onMessage((_lane, bytes) => heard.push(bytes[0] ?? 0))
    near.send('bulk', new Uint8Array([1, 1, 0, 0]))
    await expect.poll(() => heard).toEqual([1])
    let reason = ''
    createChannel({
      link: far,
      order: { pair: 'pair-1' as PairId, peer: 'other' as PeerId, attempt: 1 },
      timers,
    }).onClose((because) => {
      reason = because
    })
    expect(reason).toContain('before the hello')
  })

  test('a thread that is gone closes its links', async () => {
    const { closed } = await channels()
    lanes.lost(new CrowdError('stage-failed', 'the thread died'))
    expect(closed.far).toContain('the thread died')
    await expect.poll(() => closed.near).toContain('the thread died')
  })

  test('closing one end closes the lane', async () => {
    const { far, closed } = await channels()
    far.close('enough')
    await expect.poll(() => closed.near).toContain('enough')
  })

  test('where data channels can not go to a thread the frames pass the page', async () => {
    lanes.attach({
      post() {
        throw new DOMException('not transferable', 'DataCloneError')
      },
      listen: () => undefined,
    })
    const { far, near } = await channels()
    expect(far.lane).toBeNull()
    const heard: Uint8Array[] = []
    near.onFrame((frame) => heard.push(frame.slice()))
    await far.send(bytesOf(70_000), 'bulk')
    await expect.poll(() => heard[0]?.length).toBe(70_000)
  })
})
