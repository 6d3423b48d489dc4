import { expect, test } from 'vitest'
import { describeChannelContract, type LinkPair } from '../../test/contracts/channel.contract.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import type { PairOrder } from './channel.ts'
import type { PeerTry } from './peer-link.ts'
import { createBrowserPeerLinks } from './simple-peer.browser.ts'

describeChannelContract('simple-peer', 'direct', connectPair)

test('PA7 refuses nothing silently: a broken signal fails the try', async () => {
  const attempt = begin(true, () => undefined)
  attempt.accept({ nonsense: true })
  await expect(attempt.link).rejects.toMatchObject({ code: 'link-closed' })
})

test('PA7 uses no ICE server but the ones of its order', async () => {
  const signals: unknown[] = []
  const attempt = begin(true, (signal) => signals.push(signal))
  await expect.poll(() => JSON.stringify(signals)).toContain('candidate')
  attempt.close()
  expect(JSON.stringify(signals)).not.toMatch(/srflx|typ relay/)
  await expect(attempt.link).rejects.toThrow()
})

async function connectPair(): Promise<LinkPair> {
  const ends: { left?: PeerTry; right?: PeerTry } = {}
  const left = begin(true, (signal) => ends.right?.accept(copy(signal)))
  const right = begin(false, (signal) => ends.left?.accept(copy(signal)))
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

function begin(initiator: boolean, onSignal: (signal: unknown) => void): PeerTry {
  const makePeerLink = createBrowserPeerLinks()
  if (makePeerLink === null) throw new Error('this browser has no WebRTC')
  const order: PairOrder = {
    // Names that a test chooses are ids without a parser.
    pair: 'pair-1' as PairId,
    peer: 'other' as PeerId,
    initiator,
    attempt: 1,
    iceServers: [],
  }
  return makePeerLink({ order, onSignal })
}

/** As through a server: JSON. */
function copy(signal: unknown): unknown {
  return JSON.parse(JSON.stringify(signal))
}
