import { CrowdError } from '../errors.ts'
import type { PieceHash } from '../ids.ts'
import { PIECE_HASHES_MAX, PIECE_PART_BYTES } from '../limits.ts'

/** Why a piece isn't sent: it isn't stored there, or enough others are being sent. */
export type PieceRefusal = 'not-here' | 'busy'

/** What the two ends of a piece link say to each other; each is one frame on its bulk lane. */
export type PieceMessage =
  /** From the serving end: pieces that it has; several of these add up. */
  | { readonly kind: 'have'; readonly hashes: readonly PieceHash[] }
  /** From the fetching end. `request` is its own number for what follows. */
  | { readonly kind: 'want'; readonly request: number; readonly hash: PieceHash }
  /** Bytes of a piece from `offset` on; a view on the frame. */
  | {
      readonly kind: 'part'
      readonly request: number
      readonly offset: number
      readonly bytes: Uint8Array
    }
  | { readonly kind: 'refusal'; readonly request: number; readonly reason: PieceRefusal }
  /** From the fetching end: not wanted any more. */
  | { readonly kind: 'stop'; readonly request: number }

const KIND = { have: 1, want: 2, part: 3, refusal: 4, stop: 5 } as const
const REFUSALS: readonly PieceRefusal[] = ['not-here', 'busy']
const HASH_BYTES = 32
const PART_HEADER_BYTES = 12

/** The frame of a message. The bytes of a part are copied. */
export function encodePieceMessage(message: PieceMessage): Uint8Array<ArrayBuffer> {
  switch (message.kind) {
    case 'have': {
      const frame = frameOf(KIND.have, 8 + message.hashes.length * HASH_BYTES)
      word(frame, 4, message.hashes.length)
      for (const [index, hash] of message.hashes.entries())
        writeHash(frame, 8 + index * HASH_BYTES, hash)
      return frame
    }
    case 'want': {
      const frame = frameOf(KIND.want, 8 + HASH_BYTES)
      word(frame, 4, message.request)
      writeHash(frame, 8, message.hash)
      return frame
    }
    case 'part': {
      const frame = frameOf(KIND.part, PART_HEADER_BYTES + message.bytes.length)
      word(frame, 4, message.request)
      word(frame, 8, message.offset)
      frame.set(message.bytes, PART_HEADER_BYTES)
      return frame
    }
    case 'refusal': {
      const frame = frameOf(KIND.refusal, 8)
      frame[1] = REFUSALS.indexOf(message.reason) + 1
      word(frame, 4, message.request)
      return frame
    }
    case 'stop': {
      const frame = frameOf(KIND.stop, 8)
      word(frame, 4, message.request)
      return frame
    }
  }
}

/** Reads one frame. Lengths are checked before anything is allocated. @throws CrowdError bad-frame */
export function decodePieceMessage(frame: Uint8Array): PieceMessage {
  if (frame.length < 8) throw bad(`${frame.length} bytes`)
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  const kind = view.getUint8(0)
  if (view.getUint16(2, true) !== 0 || (kind !== KIND.refusal && view.getUint8(1) !== 0))
    throw bad('reserved bytes are not zero')
  const request = view.getUint32(4, true)
  switch (kind) {
    case KIND.have:
      return readHave(frame, request)
    case KIND.want:
      checkLength(frame, 8 + HASH_BYTES)
      return { kind: 'want', request, hash: readHash(frame, 8) }
    case KIND.part:
      return readPart(frame, view, request)
    case KIND.refusal: {
      checkLength(frame, 8)
      const reason = REFUSALS[view.getUint8(1) - 1]
      if (reason === undefined) throw bad(`refusal ${view.getUint8(1)}`)
      return { kind: 'refusal', request, reason }
    }
    case KIND.stop:
      checkLength(frame, 8)
      return { kind: 'stop', request }
    default:
      throw bad(`kind ${kind}`)
  }
}

function readHave(frame: Uint8Array, count: number): PieceMessage {
  if (count > PIECE_HASHES_MAX) throw bad(`${count} hashes`)
  checkLength(frame, 8 + count * HASH_BYTES)
  const hashes = Array.from({ length: count }, (_, index) =>
    readHash(frame, 8 + index * HASH_BYTES),
  )
  return { kind: 'have', hashes }
}

function readPart(frame: Uint8Array, view: DataView, request: number): PieceMessage {
  const length = frame.length - PART_HEADER_BYTES
  if (length < 1 || length > PIECE_PART_BYTES) throw bad(`a part of ${length} bytes`)
  const bytes = frame.subarray(PART_HEADER_BYTES)
  return { kind: 'part', request, offset: view.getUint32(8, true), bytes }
}

function frameOf(kind: number, length: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(length)
  frame[0] = kind
  return frame
}

function word(frame: Uint8Array<ArrayBuffer>, offset: number, value: number): void {
  new DataView(frame.buffer).setUint32(offset, value, true)
}

function writeHash(frame: Uint8Array, offset: number, hash: PieceHash): void {
  for (let index = 0; index < HASH_BYTES; index += 1)
    frame[offset + index] = Number.parseInt(hash.slice(index * 2, index * 2 + 2), 16)
}

/** 32 bytes are always a hash in form. */
function readHash(frame: Uint8Array, offset: number): PieceHash {
  let hex = ''
  for (const byte of frame.subarray(offset, offset + HASH_BYTES))
    hex += byte.toString(16).padStart(2, '0')
  return hex as PieceHash
}

function checkLength(frame: Uint8Array, expected: number): void {
  if (frame.length !== expected) throw bad(`${frame.length} bytes, expected ${expected}`)
}

function bad(what: string): CrowdError {
  return new CrowdError('bad-frame', `bad piece message: ${what}`)
}
