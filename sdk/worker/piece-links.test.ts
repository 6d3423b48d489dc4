import { beforeEach, expect, test } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { PairId, PeerId, PieceHash } from '../core/ids.ts'
import type { Manifest } from '../core/model/manifest.ts'
import type { Channel, PairOrder } from '../net/channel.ts'
import type { ClientMessageOf } from '../protocol/client-to-server.ts'
import { hashOf, modelOf } from '../../test/support/host-fixtures.ts'
import { createManualTimers, settle, type ManualTimers } from '../../test/support/manual-timers.ts'
import { openPiecePair, sayPieces, type PiecePair } from '../../test/support/piece-pair.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import { createPieceLinks, type PieceLinks } from './piece-links.ts'

const OF_MODEL = hashOf(1)
const OF_ANOTHER = hashOf(999)

let timers: ManualTimers
let links: PieceLinks
let told: ClientMessageOf<'link-state'>[]
let connects: { order: PairOrder; signal: AbortSignal; answer: Deferred<Channel> }[]
let stored: PieceHash[]
let manifest: Manifest | null
let changes: number

beforeEach(() => {
  timers = createManualTimers()
  told = []
  connects = []
  stored = [OF_MODEL, OF_ANOTHER]
  manifest = modelOf()
  changes = 0
  links = createPieceLinks({
    connector: {
      connect(order, signal) {
        const answer = createDeferred<Channel>()
        connects.push({ order, signal, answer })
        return answer.promise
      },
    },
    send: (message) => {
      if (message.kind === 'link-state') told.push(message)
    },
    store: {
      list: () => Promise.resolve(stored),
      read: (hash) => Promise.resolve(hash === OF_MODEL ? new Uint8Array(1_000) : null),
    },
    manifest: () => manifest,
    isComputing: () => false,
    now: timers.now,
    later: timers.after,
  })
  links.peers.onChange(() => {
    changes += 1
  })
})

const orderOf = (number: number, initiator = true): PairOrder => ({
  // Names that a test chooses are ids without a parser.
  pair: `pair-${number}` as PairId,
  peer: `peer-${number}` as PeerId,
  initiator,
  attempt: 1,
  purpose: 'pieces',
  iceServers: [],
})

async function flow(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await settle()
}

/** Opens the link that was ordered last; the pair's `fetcher` is this end where this end begins. */
async function connected(isFetcher = true): Promise<PiecePair> {
  const pair = openPiecePair(timers, `peer-${connects.length}`)
  connects.at(-1)?.answer.resolve(isFetcher ? pair.fetcher : pair.source)
  await flow()
  return pair
}

test('links are awaited from the order on until the source has said what it has', async () => {
  links.expect(1)
  expect(links.peers.awaited).toBe(true)
  links.open(orderOf(1))
  expect([links.peers.awaited, links.peers.list()]).toEqual([true, []])
  const { source } = await connected()
  expect(links.peers.awaited).toBe(true)
  expect(told).toMatchObject([{ pair: 'pair-1', attempt: 1, state: 'open', path: 'local' }])
  const before = changes
  sayPieces(source, { kind: 'have', hashes: [OF_MODEL, OF_ANOTHER] })
  await flow()
  expect(changes).toBeGreaterThan(before)
  expect(links.peers.awaited).toBe(false)
  const [peer] = links.peers.list()
  expect([peer?.name, peer?.has(OF_MODEL), peer?.has(OF_ANOTHER)]).toEqual(['peer-1', true, false])
})

test('a link that fails is told to the host and awaited no more', async () => {
  links.open(orderOf(1))
  connects[0]?.answer.reject(new CrowdError('link-closed', 'no way'))
  await flow()
  expect(told).toMatchObject([{ pair: 'pair-1', state: 'closed' }])
  expect([links.peers.awaited, links.peers.list()]).toEqual([false, []])
})

test('the end that did not begin gives: pieces of the served model, and nothing of its own to fetch from', async () => {
  links.open(orderOf(1, false))
  const { fetcher } = await connected(false)
  const heard: number[] = []
  fetcher.onFrame((frame) => heard.push(frame.length))
  await flow()
  expect(heard).toEqual([8 + 32])
  expect([links.peers.awaited, links.peers.list()]).toEqual([false, []])
})

test('PC5 a device without a model gives nothing', async () => {
  manifest = null
  links.open(orderOf(1, false))
  const { fetcher } = await connected(false)
  const heard: number[] = []
  fetcher.onFrame((frame) => heard.push(frame.length))
  await flow()
  expect(heard).toEqual([8])
})

test('PC9 the host hears which link brought wrong bytes', async () => {
  links.open(orderOf(1))
  await connected()
  links.peers.list()[0]?.reject('another hash')
  await flow()
  expect(told.at(-1)).toMatchObject({
    pair: 'pair-1',
    state: 'closed',
    error: { code: 'piece-corrupt', message: 'another hash' },
  })
  expect(links.peers.list()).toEqual([])
})

test('a link that is lost is told, without an accusation', async () => {
  links.open(orderOf(1))
  const { source } = await connected()
  source.close('over')
  await flow()
  expect(told.map(({ state }) => state)).toEqual(['open', 'closed'])
  expect(told[1]).not.toHaveProperty('error')
})

test('what the host closes is closed without a word, and a channel that comes late too', async () => {
  links.open(orderOf(1))
  links.close('pair-1' as PairId, 'the pieces are there')
  expect(connects[0]?.signal.aborted).toBe(true)
  const late = openPiecePair(timers)
  let reason = ''
  late.fetcher.onClose((because) => {
    reason = because
  })
  connects[0]?.answer.resolve(late.fetcher)
  await flow()
  expect([reason, told]).toEqual(['not wanted any more', []])
})

test('after a new connection to the host nothing of before is left', async () => {
  links.expect(3)
  links.open(orderOf(1))
  const { fetcher } = await connected()
  links.open(orderOf(2))
  let closed = false
  fetcher.onClose(() => {
    closed = true
  })
  links.closeAll('made anew')
  await flow()
  expect([closed, links.peers.awaited, links.peers.list()]).toEqual([true, false, []])
  expect(connects[1]?.signal.aborted).toBe(true)
  await timers.advance(60_000)
  expect(timers.pending).toBe(0)
})

test('the same order again changes nothing', () => {
  links.open(orderOf(1))
  links.open(orderOf(1))
  expect(connects).toHaveLength(1)
})
