import { beforeEach, describe, expect, test } from 'vitest'
import {
  PIECE_BUSY_MS,
  PIECE_FLOOR_BYTES_PER_SECOND,
  PIECE_FLOOR_MS,
  PIECE_PART_BYTES,
  PIECE_SILENCE_MS,
} from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import type { PieceMessage } from '../core/wire/piece-message.ts'
import { createManualTimers, type ManualTimers } from '../../test/support/manual-timers.ts'
import {
  closeReason,
  fetchFrom,
  flow,
  listenPieces,
  makePiece,
  NO_HASH,
  openPiecePair,
  sayPieces,
} from '../../test/support/piece-pair.ts'
import { createPieceSource } from './piece-source.ts'

let timers: ManualTimers
let pieces: { piece: Piece; bytes: Uint8Array }[]
let wrong: string[]

beforeEach(async () => {
  timers = createManualTimers()
  pieces = await Promise.all([1, 2].map((seed) => makePiece(seed, 100)))
  wrong = []
})

const at = (index: number): { piece: Piece; bytes: Uint8Array } => {
  const found = pieces[index]
  if (found === undefined) throw new Error(`no piece ${index}`)
  return found
}

describe('the fetching end', () => {
  /** A source that does only what a test says. */
  async function handDriven() {
    const pair = openPiecePair(timers)
    const heard = listenPieces(pair.source)
    const source = createPieceSource({
      channel: pair.fetcher,
      isPiece: (hash) => hash !== NO_HASH,
      onChange: () => undefined,
      onWrong: (reason) => wrong.push(reason),
      now: timers.now,
      later: timers.after,
    })
    sayPieces(pair.source, { kind: 'have', hashes: pieces.map(({ piece }) => piece.sha256) })
    await flow()
    return {
      source,
      heard,
      say: (message: PieceMessage) => sayPieces(pair.source, message),
      closed: closeReason(pair.source),
    }
  }

  test('PC8 a source that sends nothing is left, though its link lives', async () => {
    const { source, closed } = await handDriven()
    const one = fetchFrom(source, at(0))
    await timers.advance(PIECE_SILENCE_MS - 600)
    expect(one.answer).toBeNull()
    await timers.advance(1_200)
    expect(one.answer).toMatchObject({ kind: 'failed' })
    expect(closed()).toContain('no piece came for too long')
    expect(wrong).toEqual([])
  })

  test('PC8 a source that is not asked for anything may keep silent', async () => {
    const { source, closed } = await handDriven()
    await timers.advance(60_000)
    expect([source.free, closed()]).toEqual([true, ''])
  })

  test.each([
    ['slower than the floor is left', 0.8, true],
    ['as fast as the floor is kept', 1.2, false],
  ])('PC8 a source that is %s', async (_, factor, isLeft) => {
    const { piece, bytes } = await makePiece(8, 8 * 1024 * 1024)
    const { source, say, closed } = await handDriven()
    say({ kind: 'have', hashes: [piece.sha256] })
    const one = fetchFrom(source, { piece })
    const step = Math.round((PIECE_FLOOR_BYTES_PER_SECOND / 5) * factor)
    for (let ms = 0, offset = 0; ms < PIECE_FLOOR_MS + 1_000; ms += 200, offset += step) {
      const part = bytes.subarray(offset, offset + step)
      for (let from = 0; from < part.length; from += PIECE_PART_BYTES)
        say({
          kind: 'part',
          request: 1,
          offset: offset + from,
          bytes: part.subarray(from, Math.min(part.length, from + PIECE_PART_BYTES)),
        })
      await timers.advance(200)
    }
    expect(one.answer !== null).toBe(isLeft)
    expect(closed().includes('too slowly')).toBe(isLeft)
  })

  test('PC7 a busy source is asked again after a while, and at once when it only takes one at a time', async () => {
    const { source, say } = await handDriven()
    const [one, two] = [fetchFrom(source, at(0)), fetchFrom(source, at(1))]
    say({ kind: 'refusal', request: 2, reason: 'busy' })
    await flow()
    expect(two.answer).toMatchObject({ kind: 'failed' })
    expect(source.free).toBe(false)
    say({ kind: 'refusal', request: 1, reason: 'busy' })
    await flow()
    expect(one.answer).toMatchObject({ kind: 'failed' })
    await timers.advance(PIECE_BUSY_MS - 1)
    expect(source.free).toBe(false)
    await timers.advance(1)
    expect(source.free).toBe(true)
    expect(source.has(at(0).piece.sha256)).toBe(true)
    fetchFrom(source, at(0))
    expect(source.free).toBe(false)
  })

  test('PC9 a source whose piece is wrong is asked no more and reported', async () => {
    const { source, closed } = await handDriven()
    source.reject('another hash')
    await flow()
    expect([source.free, source.has(at(0).piece.sha256)]).toEqual([false, false])
    expect(wrong).toEqual(['another hash'])
    expect(closed()).toContain('another hash')
  })

  test.each<[string, PieceMessage]>([
    ['a part of no request', { kind: 'part', request: 9, offset: 0, bytes: Uint8Array.of(1) }],
    ['a gap', { kind: 'part', request: 1, offset: 5, bytes: Uint8Array.of(1) }],
    [
      'more than the piece',
      { kind: 'part', request: 1, offset: 0, bytes: new Uint8Array(PIECE_PART_BYTES) },
    ],
    ['a request', { kind: 'want', request: 1, hash: NO_HASH }],
    ['a stop', { kind: 'stop', request: 1 }],
  ])('PC4 %s ends the link', async (_, message) => {
    const { source, say, closed } = await handDriven()
    const one = fetchFrom(source, at(0))
    say(message)
    await flow()
    expect(closed()).toContain('bad-frame')
    expect(one.answer).toMatchObject({ kind: 'failed' })
  })
})
