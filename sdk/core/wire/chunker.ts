import { CrowdError } from '../errors.ts'
import { CHUNK_BYTES } from '../limits.ts'
import { LINK_MESSAGE } from './link-message.ts'

/**
 * Frames travel as chunks: messages that every transport takes. Prefix of 16 bytes, little endian: kind u8
 * (chunk), three zero bytes, frame number u32, offset u32, total u32; then the bytes at that offset.
 */
export const CHUNK_PREFIX_BYTES = 16
/** Room that the relay's envelope needs, so that a chunk fits CHUNK_BYTES on every path. */
export const ENVELOPE_BYTES = 8
/** Largest message that a channel hands to a link. */
export const LINK_MESSAGE_MAX_BYTES = CHUNK_BYTES - ENVELOPE_BYTES
/** Frame bytes in one chunk. */
export const CHUNK_PAYLOAD_BYTES = LINK_MESSAGE_MAX_BYTES - CHUNK_PREFIX_BYTES

/** Length in bytes of the chunk at `offset` of a frame, prefix included. */
export function chunkBytesAt(frameBytes: number, offset: number): number {
  return CHUNK_PREFIX_BYTES + Math.min(CHUNK_PAYLOAD_BYTES, frameBytes - offset)
}

/** Writes the chunk at `offset` of a frame. The frame's bytes are copied. */
export function writeChunk(
  frame: Uint8Array,
  frameNumber: number,
  offset: number,
): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(chunkBytesAt(frame.length, offset))
  const prefix = new DataView(message.buffer)
  prefix.setUint8(0, LINK_MESSAGE.chunk)
  prefix.setUint32(4, frameNumber, true)
  prefix.setUint32(8, offset, true)
  prefix.setUint32(12, frame.length, true)
  const end = offset + message.length - CHUNK_PREFIX_BYTES
  message.set(frame.subarray(offset, end), CHUNK_PREFIX_BYTES)
  return message
}

export type Reassembler = {
  /** True while a frame is incomplete. */
  readonly open: boolean
  /**
   * Takes the next chunk of this lane. Returns the frame when it is complete, otherwise null. A frame of
   * one chunk is a view on `message`; a longer one has its own buffer, allocated once.
   * @throws CrowdError bad-frame
   */
  push(message: Uint8Array): Uint8Array | null
}

/** Puts the chunks of one lane together: in order, one frame at a time, none above `maxFrameBytes`. */
export function createReassembler(maxFrameBytes: number): Reassembler {
  let nextNumber = 0
  let buffer: Uint8Array | null = null
  let filled = 0

  return {
    get open() {
      return buffer !== null
    },
    push(message) {
      const chunk = readPrefix(message, maxFrameBytes)
      if (chunk.number !== nextNumber) {
        throw bad(`frame number ${chunk.number}, expected ${nextNumber}`)
      }
      if (chunk.offset !== filled) throw bad(`offset ${chunk.offset}, expected ${filled}`)
      if (buffer !== null && chunk.total !== buffer.length) {
        throw bad(`total ${chunk.total}, the frame began with ${buffer.length}`)
      }
      const bytes = message.subarray(CHUNK_PREFIX_BYTES)
      if (buffer === null && bytes.length === chunk.total) {
        nextNumber = (nextNumber + 1) >>> 0
        return bytes
      }
      buffer ??= new Uint8Array(chunk.total)
      buffer.set(bytes, filled)
      filled += bytes.length
      if (filled < buffer.length) return null
      const frame = buffer
      buffer = null
      filled = 0
      nextNumber = (nextNumber + 1) >>> 0
      return frame
    },
  }
}

function readPrefix(message: Uint8Array, maxFrameBytes: number) {
  if (message.length <= CHUNK_PREFIX_BYTES) throw bad(`length ${message.length}`)
  const prefix = new DataView(message.buffer, message.byteOffset, message.byteLength)
  const number = prefix.getUint32(4, true)
  const offset = prefix.getUint32(8, true)
  const total = prefix.getUint32(12, true)
  if (total > maxFrameBytes) throw bad(`total ${total} is above the limit ${maxFrameBytes}`)
  const length = message.length - CHUNK_PREFIX_BYTES
  if (offset + length > total) throw bad(`offset ${offset} + ${length} is beyond total ${total}`)
  return { number, offset, total }
}

function bad(what: string): CrowdError {
  return new CrowdError('bad-frame', `bad chunk: ${what}`)
}
