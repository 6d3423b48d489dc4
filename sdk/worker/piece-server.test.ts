import { beforeEach, describe, expect, test } from 'vitest'
import type { PieceHash } from '../core/ids.ts'
import {
  PIECE_BUSY_BYTES_PER_SECOND,
  PIECE_FLOOR_BYTES_PER_SECOND,
  PIECE_PART_BYTES,
  PIECE_REQUESTS_MAX,
} from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import type { PieceMessage } from '../core/wire/piece-message.ts'
import type { Channel } from '../net/channel.ts'
import { createManualTimers, type ManualTimers } from '../../test/support/manual-timers.ts'
import {
  closeReason,
  fetchFrom,
  flow,
  listenPieces,
  makePiece,
  NO_HASH,
  openPiecePair,
  sameBytes,
  sayPieces,
  type PieceFetch,
} from '../../test/support/piece-pair.ts'
import { createPieceServer } from './piece-server.ts'
import { createPieceSource, type PieceSource } from './piece-source.ts'

const SIZE = 3 * PIECE_PART_BYTES + 17
/** Above the credit of a link, so that it takes several round trips. */
const LARGE = 20 * PIECE_PART_BYTES

let timers: ManualTimers
let stored: Map<PieceHash, Uint8Array>
let pieces: { piece: Piece; bytes: Uint8Array }[]
let isComputing: boolean

beforeEach(async () => {
  timers = createManualTimers()
  await storePieces(SIZE)
  isComputing = false
})

async function storePieces(size: number): Promise<void> {
  pieces = await Promise.all([1, 2, 3, 4].map((seed) => makePiece(seed, size)))
  stored = new Map(pieces.map(({ piece, bytes }) => [piece.sha256, bytes]))
}

const at = (index: number): { piece: Piece; bytes: Uint8Array } => {
  const found = pieces[index]
  if (found === undefined) throw new Error(`no piece ${index}`)
  return found
}

const isPiece = (hash: PieceHash): boolean => hash !== NO_HASH

function newServer() {
  return createPieceServer({
    store: {
      list: () => Promise.resolve([...stored.keys()]),
      read: (hash) => Promise.resolve(stored.get(hash) ?? null),
    },
    isPiece,
    isComputing: () => isComputing,
    later: timers.after,
  })
}

function newSource(channel: Channel): PieceSource {
  return createPieceSource({
    channel,
    isPiece,
    onChange: () => undefined,
    onWrong: () => undefined,
    now: timers.now,
    later: timers.after,
  })
}

function isWhole({ answer }: PieceFetch, { bytes }: { bytes: Uint8Array }): boolean {
  return answer?.kind === 'bytes' && sameBytes(answer.bytes, bytes)
}

function partBytes(heard: readonly PieceMessage[], request: number): number {
  const parts = heard.flatMap((one) => (one.kind === 'part' && one.request === request ? one : []))
  return parts.reduce((sum, { bytes }) => sum + bytes.length, 0)
}

describe('a source and a fetcher', () => {
  test('PC5 the source tells what it has of the model and gives it whole', async () => {
    stored.set(NO_HASH, Uint8Array.of(1))
    const pair = openPiecePair(timers)
    newServer().serve(pair.source)
    const source = newSource(pair.fetcher)
    expect([source.ready, source.has(at(0).piece.sha256)]).toEqual([false, false])
    await flow()
    expect(source.ready).toBe(true)
    expect(pieces.map(({ piece }) => source.has(piece.sha256))).toEqual([true, true, true, true])
    expect(source.has(NO_HASH)).toBe(false)
    const [one, two] = [fetchFrom(source, at(0)), fetchFrom(source, at(1))]
    expect(source.free).toBe(false)
    await flow()
    expect([isWhole(one, at(0)), isWhole(two, at(1)), one.bytes]).toEqual([true, true, SIZE])
    expect(source.free).toBe(true)
    pair.fetcher.close('over')
    await flow()
    expect(timers.pending).toBe(0)
  })

  test('PC5 what is of another model, or can not be read, is not here', async () => {
    const pair = openPiecePair(timers)
    newServer().serve(pair.source)
    const heard = listenPieces(pair.fetcher)
    stored.set(NO_HASH, Uint8Array.of(1))
    sayPieces(pair.fetcher, { kind: 'want', request: 1, hash: NO_HASH })
    stored.delete(at(0).piece.sha256)
    sayPieces(pair.fetcher, { kind: 'want', request: 2, hash: at(0).piece.sha256 })
    await flow()
    expect(heard.slice(1)).toEqual([
      { kind: 'refusal', request: 1, reason: 'not-here' },
      { kind: 'refusal', request: 2, reason: 'not-here' },
    ])
  })

  test('a refusal ends the request, and the source counts as one without that piece', async () => {
    const pair = openPiecePair(timers)
    newServer().serve(pair.source)
    const source = newSource(pair.fetcher)
    await flow()
    stored.delete(at(0).piece.sha256)
    const one = fetchFrom(source, at(0))
    await flow()
    expect(one.answer).toEqual({ kind: 'failed', reason: 'it is not-here' })
    expect(source.has(at(0).piece.sha256)).toBe(false)
    expect(source.free).toBe(true)
  })

  test('a link that is lost in the middle fails what was under way, and leaves no timer', async () => {
    const pair = openPiecePair(timers, 'source', 5)
    newServer().serve(pair.source)
    const source = newSource(pair.fetcher)
    await timers.advance(50)
    const one = fetchFrom(source, at(0))
    await timers.advance(11)
    expect(one.bytes).toBeGreaterThan(0)
    expect(one.answer).toBeNull()
    pair.wire.break('transport: gone')
    await flow()
    expect(one.answer).toEqual({ kind: 'failed', reason: 'transport: gone' })
    expect([source.free, source.has(at(1).piece.sha256)]).toEqual([false, false])
    const late = fetchFrom(source, at(1))
    await flow()
    expect(late.answer).toMatchObject({ kind: 'failed' })
    await timers.advance(60_000)
    expect(timers.pending).toBe(0)
  })
})

describe('the serving end', () => {
  test('PC6 sends two pieces at once to one fetcher, and refuses a third', async () => {
    await storePieces(LARGE)
    const pair = openPiecePair(timers, 'source', 5)
    newServer().serve(pair.source)
    const heard = listenPieces(pair.fetcher)
    await timers.advance(20)
    for (const request of [0, 1, 2])
      sayPieces(pair.fetcher, { kind: 'want', request, hash: at(request).piece.sha256 })
    await timers.advance(300)
    expect(heard.filter(({ kind }) => kind === 'refusal')).toEqual([
      { kind: 'refusal', request: 2, reason: 'busy' },
    ])
    expect([0, 1, 2].map((request) => partBytes(heard, request))).toEqual([LARGE, LARGE, 0])
  })

  test('PC6 with two fetchers each has one piece at a time', async () => {
    await storePieces(LARGE)
    const server = newServer()
    const pairs = ['a', 'b', 'c'].map((name) => openPiecePair(timers, name, 5))
    const heard = pairs.map((pair) => {
      server.serve(pair.source)
      return listenPieces(pair.fetcher)
    })
    await timers.advance(20)
    for (const { fetcher } of pairs)
      for (const request of [0, 1])
        sayPieces(fetcher, { kind: 'want', request, hash: at(request).piece.sha256 })
    await timers.advance(100)
    const refused = heard.map((one) => one.flatMap((m) => (m.kind === 'refusal' ? m.request : [])))
    expect(refused).toEqual([[1], [1], [0, 1]])
  })

  test('PC6 while answers are computed all fetchers together get a part of the line', async () => {
    isComputing = true
    const server = newServer()
    const large = await Promise.all([5, 6].map((seed) => makePiece(seed, 4 * 1024 * 1024)))
    for (const { piece, bytes } of large) stored.set(piece.sha256, bytes)
    const pairs = ['a', 'b'].map((name) => openPiecePair(timers, name))
    const heard = pairs.map((pair) => {
      server.serve(pair.source)
      return listenPieces(pair.fetcher)
    })
    await flow()
    for (const [index, { fetcher }] of pairs.entries()) {
      const hash = large[index]?.piece.sha256 ?? NO_HASH
      sayPieces(fetcher, { kind: 'want', request: 1, hash })
    }
    await timers.advance(4_000)
    const bytes = partBytes(heard.flat(), 1)
    expect(bytes / 4).toBeGreaterThan(PIECE_BUSY_BYTES_PER_SECOND * 0.9)
    expect(bytes / 4).toBeLessThan(PIECE_BUSY_BYTES_PER_SECOND * 1.1)
    // The floor would leave a source that gives each less.
    expect(PIECE_BUSY_BYTES_PER_SECOND / 2).toBeGreaterThan(PIECE_FLOOR_BYTES_PER_SECOND * 1.5)
    isComputing = false
    for (let turn = 0; turn < 20; turn += 1) await flow()
    await timers.advance(200)
    for (let turn = 0; turn < 20; turn += 1) await flow()
    expect(partBytes(heard.flat(), 1)).toBe(8 * 1024 * 1024)
  })

  test('PC6 who asks and takes no answer is cut off', async () => {
    const pair = openPiecePair(timers)
    const server = newServer()
    // Answers that never leave, as when the other end grants no credit.
    const stuck: Channel = { ...pair.source, send: () => new Promise(() => undefined) }
    server.serve(stuck)
    for (let request = 0; request <= PIECE_REQUESTS_MAX; request += 1)
      sayPieces(pair.fetcher, { kind: 'want', request, hash: NO_HASH })
    const reason = closeReason(pair.fetcher)
    await flow()
    expect(reason()).toContain(`${PIECE_REQUESTS_MAX} requests at once`)
  })

  test('PC7 a piece that is not wanted any more stops, and the next one is served', async () => {
    const pair = openPiecePair(timers, 'source', 5)
    const many = await makePiece(9, 100 * PIECE_PART_BYTES)
    stored.set(many.piece.sha256, many.bytes)
    newServer().serve(pair.source)
    const source = newSource(pair.fetcher)
    await timers.advance(50)
    const one = fetchFrom(source, many)
    await timers.advance(30)
    one.stop.abort()
    const two = fetchFrom(source, at(0))
    await timers.advance(200)
    expect(one.answer).toEqual({ kind: 'failed', reason: 'it is not wanted any more' })
    expect(one.bytes).toBeLessThan(50 * PIECE_PART_BYTES)
    expect(isWhole(two, at(0))).toBe(true)
  })

  test.each<PieceMessage>([
    { kind: 'have', hashes: [] },
    { kind: 'part', request: 1, offset: 0, bytes: Uint8Array.of(1) },
    { kind: 'refusal', request: 1, reason: 'busy' },
  ])('PC4 $kind is not the fetcher’s to say', async (message) => {
    const pair = openPiecePair(timers)
    newServer().serve(pair.source)
    const reason = closeReason(pair.source)
    sayPieces(pair.fetcher, message)
    await flow()
    expect(reason()).toContain('bad-frame')
  })
})
