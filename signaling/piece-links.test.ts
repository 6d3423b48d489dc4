import { describe, expect, test } from 'vitest'
import type { PieceHash } from '../sdk/core/ids.ts'
import {
  PIECE_ACCUSERS,
  PIECE_LINK_MS,
  PIECE_READERS,
  PIECE_RETRY_MS,
  PIECE_SOURCES,
  PIECE_WORTH_BYTES,
} from '../sdk/core/limits.ts'
import { blockPieces } from '../sdk/core/model/manifest.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import type { ServerMessageOf } from '../sdk/protocol/server-to-client.ts'
import {
  at,
  fakeSwarm,
  pledgeOf,
  type FakePeer,
  type FakeSwarm,
} from '../test/support/fake-swarm.ts'
import { modelOf } from '../test/support/host-fixtures.ts'

const model = modelOf()
const ALL = model.blocks.flatMap(blockPieces).map(({ sha256 }) => sha256)
const ICE = [
  { urls: 'stun:stun.example.invalid' },
  { urls: 'turn:turn.example.invalid', username: 'me', credential: 'word' },
  { urls: 'TURNS:turn.example.invalid' },
]

const newSwarm = (): FakeSwarm => fakeSwarm(model, 1, { iceServers: ICE })

function pledge(peer: FakePeer, cached: readonly PieceHash[] = [], hidden = false): void {
  peer.say({ ...(pledgeOf(1e9, hidden) as ClientMessageOf<'pledge'>), cached: [...cached] })
}

function reportStage(
  peer: FakePeer,
  state: 'fetching' | 'loading' | 'ready',
  bytes: { fetchedBytes?: number; peerBytes?: number } = {},
): void {
  const { assignment } = peer.last('assign')
  const { fetchedBytes = 0, peerBytes = 0 } = bytes
  const told = { doneBytes: 0, totalBytes: 0, fetchedBytes, peerBytes }
  peer.say({ kind: 'stage-state', assignment, state, ...told })
}

/** A device that holds the whole model; it fetched it from the host. */
function holder(swarm: FakeSwarm, name: string): FakePeer {
  const peer = swarm.sharer(name)
  pledge(peer, ALL)
  reportStage(peer, 'ready')
  return peer
}

/** A device that has nothing, was told to hold the whole model, and fetches. */
function newcomer(swarm: FakeSwarm, name: string): FakePeer {
  const peer = swarm.sharer(name)
  pledge(peer)
  return peer
}

type PairOpen = ServerMessageOf<'pair-open'>
const pieceOpens = (peer: FakePeer): PairOpen[] =>
  peer.all('pair-open').filter(({ purpose }) => purpose === 'pieces')

function say(
  peer: FakePeer,
  { pair, attempt }: PairOpen,
  state: 'open' | 'closed',
  error?: ClientMessageOf<'link-state'>['error'],
): void {
  const told = { pair, attempt, state, path: 'direct', rttMs: 1 } as const
  peer.say({ kind: 'link-state', ...told, ...(error === undefined ? {} : { error }) })
}

const WRONG = { code: 'piece-corrupt', message: 'another hash' }
const names = (opens: readonly PairOpen[]): string[] => opens.map(({ peer }) => peer)

describe('piece links', () => {
  test('PC1 a device that fetches is linked with one that has what it lacks, and told so with the order', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    expect(source.last('assign')).not.toHaveProperty('sources')
    const fetcher = newcomer(swarm, 'fetcher')
    expect(fetcher.last('assign')).toMatchObject({ range: { start: 0, end: 8 }, sources: 1 })
    expect(pieceOpens(fetcher)).toMatchObject([{ peer: 'source', initiator: true, attempt: 1 }])
    expect(pieceOpens(source)).toMatchObject([{ peer: 'fetcher', initiator: false, attempt: 1 }])
  })

  test('PC1 they end with the fetch, at both ends', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    const fetcher = newcomer(swarm, 'fetcher')
    const link = at(pieceOpens(fetcher), 0)
    reportStage(fetcher, 'fetching')
    expect(fetcher.all('pair-close')).toEqual([])
    reportStage(fetcher, 'loading')
    expect(fetcher.all('pair-close').map(({ pair }) => pair)).toEqual([link.pair])
    expect(source.all('pair-close').map(({ pair }) => pair)).toEqual([link.pair])
    expect(swarm.service.state().pairs.size).toBe(0)
  })

  test('PC1 at most so many sources for a fetch, and so many fetchers for a source', () => {
    const swarm = newSwarm()
    const sources = ['a', 'b', 'c', 'd'].map((name) => holder(swarm, name))
    const fetchers = Array.from({ length: 4 }, (_, index) => newcomer(swarm, `f${index}`))
    const linked = fetchers.map((fetcher) => names(pieceOpens(fetcher)))
    expect(linked.map((list) => list.length)).toEqual([PIECE_SOURCES, PIECE_SOURCES, 2, 0])
    for (const list of linked) expect(new Set(list).size).toBe(list.length)
    expect(sources.map((source) => pieceOpens(source).length)).toEqual(
      sources.map(() => PIECE_READERS),
    )
    // Whoever is done makes room, first for whoever has least.
    reportStage(at(fetchers, 0), 'loading')
    expect(fetchers.map((fetcher) => pieceOpens(fetcher).length)).toEqual([3, 3, 2, 3])
    reportStage(at(fetchers, 1), 'loading')
    expect(fetchers.map((fetcher) => pieceOpens(fetcher).length)).toEqual([3, 3, 3, 3])
  })

  test('PC1 nobody is linked for what he has, or for what nobody has', () => {
    const swarm = newSwarm()
    const alone = newcomer(swarm, 'alone')
    expect(pieceOpens(alone)).toEqual([])
    reportStage(alone, 'ready')
    const back = swarm.sharer('back')
    pledge(back, ALL)
    expect(back.last('assign').range).toEqual({ start: 0, end: 8 })
    expect(pieceOpens(back)).toEqual([])
    expect(back.last('assign')).not.toHaveProperty('sources')
  })

  test('PC1 nobody is linked for a small part, which the host gives sooner', () => {
    const large = modelOf({ layerBytes: 2 * PIECE_WORTH_BYTES })
    const swarm = fakeSwarm(large, 1)
    const [embedding, layer] = large.blocks.flatMap(blockPieces)
    if (embedding === undefined || layer === undefined) throw new Error('no pieces')
    pledge(swarm.sharer('small'), [embedding.sha256])
    pledge(swarm.sharer('large'), [layer.sha256])
    expect(names(pieceOpens(newcomer(swarm, 'fetcher')))).toEqual(['large'])
  })

  test('PC1 a device that holds its blocks has their pieces, whatever it pledged', () => {
    const swarm = newSwarm()
    const first = newcomer(swarm, 'first')
    reportStage(first, 'ready')
    const second = newcomer(swarm, 'second')
    expect(names(pieceOpens(second))).toEqual(['first'])
  })

  test.each<[string, (swarm: FakeSwarm) => void]>([
    [
      'of an older build',
      (swarm) => {
        const old = swarm.join('source')
        pledge(old, ALL)
        reportStage(old, 'ready')
      },
    ],
    [
      'that is asleep',
      (swarm) => {
        const asleep = holder(swarm, 'source')
        asleep.say({ kind: 'beat', computing: false, sessions: [], asleep: true })
      },
    ],
    ['in a hidden tab', (swarm) => pledge(holder(swarm, 'source'), ALL, true)],
    ['that lost its connection', (swarm) => holder(swarm, 'source').handle.closed()],
    [
      'that is paused',
      (swarm) => {
        const paused = holder(swarm, 'source')
        paused.say({ ...(pledgeOf(0) as ClientMessageOf<'pledge'>), cached: ALL })
      },
    ],
  ])('PC1 a source %s is none', (_, setUp) => {
    const swarm = newSwarm()
    setUp(swarm)
    const fetcher = newcomer(swarm, 'fetcher')
    expect(fetcher.last('assign').range).not.toBeNull()
    expect(pieceOpens(fetcher)).toEqual([])
  })

  test('PC1 a fetcher of an older build is told of no source', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    const old = swarm.join('old')
    pledge(old)
    expect(old.last('assign').range).not.toBeNull()
    expect([old, source].flatMap(pieceOpens)).toEqual([])
  })

  test('PC2 the order of a piece link names no TURN server, and the host relays none of its bytes', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    const fetcher = newcomer(swarm, 'fetcher')
    const link = at(pieceOpens(fetcher), 0)
    expect(link.iceServers).toEqual([{ urls: 'stun:stun.example.invalid' }])
    expect(fetcher.handle.relay(link.pair, Uint8Array.of(1))).toBe(false)
    expect(source.relayed).toEqual([])
    expect(swarm.service.snapshot().relayedBytes).toBe(0)
  })

  test('they are no part of the ring: not shown as its links, no reason to choose another route', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    const before = swarm.service.state().links
    const fetcher = newcomer(swarm, 'fetcher')
    const link = at(pieceOpens(fetcher), 0)
    const routed = swarm.service.state().links
    expect(routed).toBeGreaterThan(before)
    for (const end of [source, fetcher]) say(end, link, 'open')
    expect(swarm.service.state().links).toBe(routed)
    expect(swarm.service.snapshot().links).toEqual([])
  })

  test('a link that fails makes room for another source, and is tried again after a while', () => {
    const swarm = newSwarm()
    const sources = new Map(['a', 'b', 'c', 'd'].map((name) => [name, holder(swarm, name)]))
    const fetcher = newcomer(swarm, 'fetcher')
    const first = at(pieceOpens(fetcher), 0)
    say(fetcher, first, 'closed')
    expect(names(pieceOpens(fetcher)).slice(PIECE_SOURCES)).toEqual(['d'])
    // The three that stay open leave no room; another one fails.
    for (const open of pieceOpens(fetcher).slice(1)) {
      say(fetcher, open, 'open')
      const mirror = pieceOpens(sources.get(open.peer) ?? fetcher)
      say(sources.get(open.peer) ?? fetcher, at(mirror, 0), 'open')
    }
    swarm.pass(PIECE_RETRY_MS + 200)
    say(fetcher, at(pieceOpens(fetcher), 1), 'closed')
    expect(names(pieceOpens(fetcher)).at(-1)).toBe(first.peer)
  })

  test('a link that nobody reports makes room for another source as well', () => {
    const swarm = newSwarm()
    for (const name of ['a', 'b', 'c', 'd']) holder(swarm, name)
    const fetcher = newcomer(swarm, 'fetcher')
    expect(pieceOpens(fetcher)).toHaveLength(PIECE_SOURCES)
    swarm.pass(PIECE_LINK_MS + 200)
    expect(names(pieceOpens(fetcher)).at(-1)).toBe('d')
  })

  test('a source that leaves ends its links', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    const fetcher = newcomer(swarm, 'fetcher')
    const link = at(pieceOpens(fetcher), 0)
    source.say({ kind: 'leave' })
    expect(fetcher.all('pair-close').map(({ pair }) => pair)).toEqual([link.pair])
  })
})

describe('wrong bytes', () => {
  test('PC9 a source is not named again to whoever got wrong bytes of it', () => {
    const swarm = newSwarm()
    holder(swarm, 'liar')
    const fetcher = newcomer(swarm, 'fetcher')
    const link = at(pieceOpens(fetcher), 0)
    say(fetcher, link, 'closed', WRONG)
    swarm.pass(PIECE_RETRY_MS + 200)
    expect(pieceOpens(fetcher)).toHaveLength(1)
    // The word of one alone is not believed by all.
    expect(names(pieceOpens(newcomer(swarm, 'other')))).toEqual(['liar'])
  })

  test('PC9 once several say so it is no source for anybody', () => {
    const swarm = newSwarm()
    holder(swarm, 'liar')
    for (let index = 0; index < PIECE_ACCUSERS; index += 1) {
      const fetcher = newcomer(swarm, `f${index}`)
      const link = at(pieceOpens(fetcher), 0)
      say(fetcher, link, 'closed', WRONG)
    }
    expect(pieceOpens(newcomer(swarm, 'last'))).toEqual([])
  })

  test('PC9 only whoever fetches over a link can accuse its other end', () => {
    const swarm = newSwarm()
    const source = holder(swarm, 'source')
    const fetcher = newcomer(swarm, 'fetcher')
    const link = at(pieceOpens(fetcher), 0)
    say(source, link, 'closed', WRONG)
    say(swarm.join('stranger'), link, 'closed', WRONG)
    const accusers = [...swarm.service.state().peers.values()].flatMap((peer) => peer.accusers)
    expect(accusers).toEqual([])
  })
})

test('bytes of pieces are counted by who gave them, and shown with the device', () => {
  const swarm = newSwarm()
  holder(swarm, 'source')
  const fetcher = newcomer(swarm, 'fetcher')
  reportStage(fetcher, 'fetching', { fetchedBytes: 100, peerBytes: 60 })
  reportStage(fetcher, 'fetching', { fetchedBytes: 150, peerBytes: 90 })
  expect(swarm.service.state().pieceBytes).toEqual({ host: 60, peers: 90 })
  const shown = swarm.service.snapshot().peers.find(({ name }) => name === 'fetcher')
  expect(shown).toMatchObject({ fetchedBytes: 150, peerBytes: 90 })
  // More from peers than at all can't be, and less than before takes nothing back.
  reportStage(fetcher, 'fetching', { fetchedBytes: 160, peerBytes: 1_000 })
  reportStage(fetcher, 'fetching', { fetchedBytes: 0, peerBytes: 0 })
  expect(swarm.service.state().pieceBytes).toEqual({ host: 60, peers: 100 })
})
