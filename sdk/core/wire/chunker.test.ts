import { describe, expect, test } from 'vitest'
import { CHUNK_BYTES } from '../limits.ts'
import {
  CHUNK_PAYLOAD_BYTES,
  CHUNK_PREFIX_BYTES,
  chunkBytesAt,
  createReassembler,
  writeChunk,
} from './chunker.ts'

function pattern(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => (index * 7 + (index >> 8)) & 255)
}

function chunksOf(frame: Uint8Array, frameNumber: number): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let offset = 0; offset < frame.length;) {
    const chunk = writeChunk(frame, frameNumber, offset)
    expect(chunk.length).toBe(chunkBytesAt(frame.length, offset))
    chunks.push(chunk)
    offset += chunk.length - CHUNK_PREFIX_BYTES
  }
  return chunks
}

describe('chunks', () => {
  test('CH1 keeps the golden bytes of a chunk', () => {
    const chunk = writeChunk(Uint8Array.of(9, 8, 7), 0x01020304, 1)
    expect([...chunk]).toEqual([3, 0, 0, 0, 4, 3, 2, 1, 1, 0, 0, 0, 3, 0, 0, 0, 8, 7])
  })

  const sizes = [1, 4_144, CHUNK_PAYLOAD_BYTES, CHUNK_PAYLOAD_BYTES + 1, 3 * CHUNK_PAYLOAD_BYTES]
  for (const size of sizes) {
    test(`CH1 cuts and joins a frame of ${size} bytes`, () => {
      const reassembler = createReassembler(1 << 20)
      for (const number of [0, 1]) {
        const frame = pattern(size)
        const chunks = chunksOf(frame, number)
        expect(chunks.length).toBe(Math.ceil(size / CHUNK_PAYLOAD_BYTES))
        for (const chunk of chunks) expect(chunk.length).toBeLessThanOrEqual(CHUNK_BYTES - 8)
        const results = chunks.map((chunk) => reassembler.push(chunk))
        expect(results.slice(0, -1).every((result) => result === null)).toBe(true)
        expect(Buffer.compare(results.at(-1)!, frame)).toBe(0)
        expect(reassembler.open).toBe(false)
      }
    })
  }

  test('CH3 lends a frame of one chunk in place, its payload aligned', () => {
    const message = writeChunk(pattern(96), 0, 0)
    const frame = createReassembler(1_000).push(message)!
    expect(frame.buffer).toBe(message.buffer)
    expect(frame.byteOffset % 4).toBe(0)
  })

  test('CH1 counts frames modulo 2^32', () => {
    const chunk = writeChunk(pattern(4), 0x1_0000_0000, 0)
    expect(createReassembler(10).push(chunk)).toEqual(pattern(4))
  })
})

describe('refusals', () => {
  const big = pattern(2 * CHUNK_PAYLOAD_BYTES)
  const wrong: readonly [string, RegExp, Uint8Array[]][] = [
    ['too short', /length 16/, [new Uint8Array(16)]],
    ['a repeated frame number', /frame number 0, expected 1/, repeat(writeChunk(pattern(4), 0, 0))],
    ['a skipped frame number', /frame number 2/, [writeChunk(pattern(4), 2, 0)]],
    [
      'a start in the middle',
      /offset 65512, expected 0/,
      [writeChunk(big, 0, CHUNK_PAYLOAD_BYTES)],
    ],
    ['a repeated chunk', /offset 0, expected/, repeat(writeChunk(big, 0, 0))],
    [
      'another frame before the end',
      /frame number 1, expected 0/,
      [writeChunk(big, 0, 0), writeChunk(pattern(4), 1, 0)],
    ],
    [
      'another total',
      /total/,
      [writeChunk(big, 0, 0), withTotal(writeChunk(big, 0, 65_512), 131_025)],
    ],
    ['more than its total', /beyond total 3/, [withTotal(writeChunk(pattern(4), 0, 0), 3)]],
    ['a total above the limit', /above the limit/, [withTotal(writeChunk(big, 0, 0), 1_000_001)]],
    [
      'an offset that wraps',
      /beyond total/,
      [withOffset(writeChunk(pattern(4), 0, 0), 0xffff_fffe)],
    ],
  ]
  for (const [what, message, chunks] of wrong) {
    test(`CH4 refuses ${what}`, () => {
      const reassembler = createReassembler(1_000_000)
      const push = () => chunks.map((chunk) => reassembler.push(chunk))
      expect(push).toThrow(message)
      expect(push).toThrow(expect.objectContaining({ code: 'bad-frame' }))
    })
  }
})

function repeat(chunk: Uint8Array): Uint8Array[] {
  return [chunk, chunk]
}

function withTotal(chunk: Uint8Array, total: number): Uint8Array {
  new DataView(chunk.buffer).setUint32(12, total, true)
  return chunk
}

function withOffset(chunk: Uint8Array, offset: number): Uint8Array {
  new DataView(chunk.buffer).setUint32(8, offset, true)
  return chunk
}
