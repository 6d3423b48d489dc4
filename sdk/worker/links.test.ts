import { expect, test } from 'vitest'
import type { PairId, PeerId } from '../core/ids.ts'
import type { Channel, Connector, PairOrder } from '../net/channel.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import { createLinks } from './links.ts'

const PAIR = 'pair-1' as PairId
const order = (attempt: number): PairOrder => ({
  pair: PAIR,
  peer: 'other' as PeerId,
  initiator: true,
  attempt,
  iceServers: [],
})

function fakeChannel() {
  let onClose: (reason: string) => void = () => undefined
  const closedWith: string[] = []
  const channel = {
    path: 'direct',
    lane: null,
    stats: () => ({ rttMs: 3, sentBytes: 0, receivedBytes: 0 }),
    onFrame: () => undefined,
    onClose: (handler: (reason: string) => void) => (onClose = handler),
    close: (reason: string) => closedWith.push(reason),
  } as unknown as Channel
  return { channel, closedWith, die: (reason: string) => onClose(reason) }
}

function setUp() {
  const sent: ClientMessage[] = []
  const lost: string[] = []
  const connects: Deferred<Channel>[] = []
  const limits: (() => void)[] = []
  const connector = {
    connect: () => {
      const connecting = createDeferred<Channel>()
      connects.push(connecting)
      return connecting.promise
    },
  } as unknown as Connector
  const links = createLinks({
    connector,
    send: (message) => sent.push(message),
    onFrame: () => undefined,
    onLost: (_pair, reason) => lost.push(reason),
    onChange: () => undefined,
    later: (_ms, task) => {
      limits.push(task)
      return () => undefined
    },
  })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { links, sent, lost, connects, limits, settled }
}

test('PA8 an open link is reported with its attempt and path, and again when it closes', async () => {
  const { links, sent, lost, connects, settled } = setUp()
  const { channel, die } = fakeChannel()
  links.open(order(1))
  connects[0]?.resolve(channel)
  await settled()
  die('silence')
  expect(sent).toMatchObject([
    { kind: 'link-state', attempt: 1, state: 'open', path: 'direct', rttMs: 3 },
    { kind: 'link-state', attempt: 1, state: 'closed' },
  ])
  expect(lost).toEqual(['silence'])
})

test('PA2 a higher attempt replaces an open channel and fails what used it; a lower one changes nothing', async () => {
  const { links, lost, connects, settled } = setUp()
  const { channel, closedWith } = fakeChannel()
  links.open(order(1))
  connects[0]?.resolve(channel)
  await settled()
  links.open(order(1))
  expect(connects).toHaveLength(1)
  links.open(order(2))
  expect(connects).toHaveLength(2)
  expect(closedWith).toEqual(['replaced'])
  expect(lost).toEqual(['replaced by a new attempt'])
})

test('a session may wait for a pair before it is ordered, within a limit', async () => {
  const { links, connects, limits, settled } = setUp()
  const { channel } = fakeChannel()
  const early = links.channel(PAIR)
  const tooLong = links.channel('pair-2' as PairId)
  links.open(order(1))
  connects[0]?.resolve(channel)
  expect(await early).toBe(channel)
  limits[1]?.()
  await expect(tooLong).rejects.toMatchObject({ code: 'timeout' })
  await settled()
})

test('a channel that comes after its pair was closed is closed at once', async () => {
  const { links, connects, sent, settled } = setUp()
  const { channel, closedWith } = fakeChannel()
  links.open(order(1))
  links.close(PAIR, 'not needed')
  connects[0]?.resolve(channel)
  await settled()
  expect(closedWith).toEqual(['not wanted any more'])
  expect(sent).toEqual([])
})

test('closing all forgets every link, so that the first attempt of a new host is taken', async () => {
  const { links, connects, settled } = setUp()
  links.open(order(5))
  links.closeAll('the connection to the host was made anew')
  links.open(order(1))
  await settled()
  expect(connects).toHaveLength(2)
  expect(links.list()).toHaveLength(1)
})
