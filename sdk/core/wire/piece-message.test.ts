import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CrowdError } from '../errors.ts'
import type { PieceHash } from '../ids.ts'
import { PIECE_HASHES_MAX, PIECE_PART_BYTES } from '../limits.ts'
import { CHUNK_PAYLOAD_BYTES } from './chunker.ts'
import { decodePieceMessage, encodePieceMessage, type PieceMessage } from './piece-message.ts'

const HASH = '00ff'.repeat(16) as PieceHash
const hash = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex') as PieceHash)
const u32 = fc.integer({ min: 0, max: 0xffff_ffff })

const message: fc.Arbitrary<PieceMessage> = fc.oneof(
  fc.record({ kind: fc.constant('have' as const), hashes: fc.array(hash, { maxLength: 5 }) }),
  fc.record({ kind: fc.constant('want' as const), request: u32, hash }),
  fc.record({
    kind: fc.constant('part' as const),
    request: u32,
    offset: u32,
    bytes: fc.uint8Array({ minLength: 1, maxLength: 50 }),
  }),
  fc.record({
    kind: fc.constant('refusal' as const),
    request: u32,
    reason: fc.constantFrom('not-here' as const, 'busy' as const),
  }),
  fc.record({ kind: fc.constant('stop' as const), request: u32 }),
)

test('PC3 the bytes of piece messages are those of the table', () => {
  const bytesOf = (one: PieceMessage): number[] => [...encodePieceMessage(one)]
  const hashBytes = Array.from({ length: 16 }, () => [0x00, 0xff]).flat()
  expect(bytesOf({ kind: 'have', hashes: [HASH] })).toEqual([1, 0, 0, 0, 1, 0, 0, 0, ...hashBytes])
  expect(bytesOf({ kind: 'want', request: 258, hash: HASH })).toEqual([
    ...[2, 0, 0, 0, 2, 1, 0, 0],
    ...hashBytes,
  ])
  expect(bytesOf({ kind: 'part', request: 3, offset: 65_536, bytes: Uint8Array.of(7, 8) })).toEqual(
    [3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1, 0, 7, 8],
  )
  expect(bytesOf({ kind: 'refusal', request: 4, reason: 'not-here' })).toEqual([
    4, 1, 0, 0, 4, 0, 0, 0,
  ])
  expect(bytesOf({ kind: 'refusal', request: 4, reason: 'busy' })[1]).toBe(2)
  expect(bytesOf({ kind: 'stop', request: 5 })).toEqual([5, 0, 0, 0, 5, 0, 0, 0])
})

test('PC3 what was written is read back, also at an odd place in a larger buffer', () => {
  fc.assert(
    fc.property(message, fc.integer({ min: 0, max: 3 }), (one, shift) => {
      const frame = encodePieceMessage(one)
      const larger = new Uint8Array(shift + frame.length)
      larger.set(frame, shift)
      expect(decodePieceMessage(larger.subarray(shift))).toEqual(one)
    }),
  )
})

test('a full part fits one chunk, and a full list one frame', () => {
  const part = { kind: 'part', request: 0, offset: 0, bytes: new Uint8Array(PIECE_PART_BYTES) }
  expect(encodePieceMessage(part as PieceMessage).length).toBeLessThanOrEqual(CHUNK_PAYLOAD_BYTES)
  const hashes = Array.from({ length: PIECE_HASHES_MAX }, () => HASH)
  expect(decodePieceMessage(encodePieceMessage({ kind: 'have', hashes }))).toMatchObject({ hashes })
})

test.each<[string, number[]]>([
  ['no bytes', []],
  ['too few', [5, 0, 0, 0]],
  ['an unknown kind', [6, 0, 0, 0, 1, 0, 0, 0]],
  ['kind 0', [0, 0, 0, 0, 1, 0, 0, 0]],
  ['a reserved byte', [5, 1, 0, 0, 1, 0, 0, 0]],
  ['a reserved byte of a refusal', [4, 1, 1, 0, 1, 0, 0, 0]],
  ['an unknown refusal', [4, 3, 0, 0, 1, 0, 0, 0]],
  ['refusal 0', [4, 0, 0, 0, 1, 0, 0, 0]],
  ['a stop that is too long', [5, 0, 0, 0, 1, 0, 0, 0, 0]],
  ['a want that is too short', [2, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3]],
  ['a part without its offset', [3, 0, 0, 0, 1, 0, 0, 0]],
  ['a part without bytes', [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]],
  ['more hashes than follow', [1, 0, 0, 0, 1, 0, 0, 0]],
  ['fewer hashes than follow', [1, 0, 0, 0, 0, 0, 0, 0, ...new Array<number>(32).fill(1)]],
  ['more hashes than there may be', [1, 0, 0, 0, 255, 255, 255, 255]],
])('PC4 %s is refused', (_, bytes) => {
  expect(() => decodePieceMessage(Uint8Array.from(bytes))).toThrow(
    expect.objectContaining({ code: 'bad-frame' }) as Error,
  )
})

test('PC4 a part above the limit is refused', () => {
  const frame = new Uint8Array(12 + PIECE_PART_BYTES + 1)
  frame[0] = 3
  expect(() => decodePieceMessage(frame)).toThrow('a part of')
})

test('PC4 whatever bytes come, the answer is a message or bad-frame, and a message means its bytes', () => {
  const near = fc.tuple(message, u32, fc.integer({ min: 0, max: 255 })).map(([one, at, value]) => {
    const frame = encodePieceMessage(one)
    frame[at % frame.length] = value
    return frame.subarray(0, frame.length - (at % 3 === 0 ? 1 : 0))
  })
  fc.assert(
    fc.property(fc.oneof(near, fc.uint8Array({ maxLength: 80 })), (frame) => {
      try {
        expect(encodePieceMessage(decodePieceMessage(frame))).toEqual(Uint8Array.from(frame))
      } catch (thrown) {
        if (!(thrown instanceof CrowdError)) throw thrown
        expect(thrown.code).toBe('bad-frame')
      }
    }),
    { numRuns: 2_000 },
  )
})
