import { CrowdError } from '../errors.ts'
import type { SessionId } from '../ids.ts'
import { FRAME_MAX_BYTES, PROMPT_MAX_TOKENS } from '../limits.ts'
import { allFinite, frameChecksum } from './checksum.ts'
import {
  badFrame,
  CHECKSUM_WORD,
  checkShape,
  dtypeOf,
  FLAG_SAMPLE,
  FRAME_HEADER_BYTES,
  FRAME_MAGIC,
  HEADER_WORDS,
  KIND_CODES,
  readKind,
  WIRE_VERSION,
  type FrameExpectation,
  type FrameShape,
} from './frame-layout.ts'

export type { FrameExpectation } from './frame-layout.ts'

/** What every frame tells. All numbers are unsigned 32-bit. */
export type FrameHead = {
  readonly session: SessionId
  readonly epoch: number
  /** Number of the lap since the session opened. */
  readonly step: number
  /** Position of the first row (activation), or the position that the token takes. */
  readonly position: number
  /** Compute time of this lap so far, in µs; each stage adds its own. */
  readonly computeMicros: number
}

/** Hidden states of `tokenCount` consecutive positions. */
export type ActivationFrame = FrameHead & {
  readonly kind: 'activation'
  readonly tokenCount: number
  readonly hiddenSize: number
  /** The last stage samples a token after the last row. */
  readonly sample: boolean
  readonly data: Float32Array // (tokenCount, hiddenSize)
}
/** A chosen token on its way from the last stage to the first. */
export type TokenFrame = FrameHead & { readonly kind: 'token'; readonly token: number }
export type Frame = ActivationFrame | TokenFrame

/**
 * Writes one frame. The payload is copied, so the caller may reuse its buffer at once.
 * @throws CrowdError bad-frame (a shape or number that doesn't fit), non-finite
 */
export function encodeFrame(frame: Frame): Uint8Array<ArrayBuffer> {
  const shape = shapeOf(frame)
  checkHead(frame, shape)
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + shape.payloadBytes)
  const header = new DataView(bytes.buffer)
  header.setUint16(0, FRAME_MAGIC, true)
  header.setUint8(2, WIRE_VERSION)
  header.setUint8(3, KIND_CODES[frame.kind])
  header.setUint32(4, frame.session, true)
  header.setUint32(8, frame.epoch, true)
  header.setUint32(12, frame.step, true)
  header.setUint32(16, frame.position, true)
  header.setUint32(20, shape.tokenCount, true)
  header.setUint8(24, shape.dtype)
  header.setUint8(25, frame.kind === 'activation' && frame.sample ? FLAG_SAMPLE : 0)
  header.setUint32(28, shape.hiddenSize, true)
  header.setUint32(32, shape.payloadBytes, true)
  header.setUint32(40, frame.computeMicros, true)
  writePayload(frame, bytes)
  const words = new Uint32Array(bytes.buffer)
  if (frame.kind === 'activation' && !allFinite(words, HEADER_WORDS)) {
    throw new CrowdError('non-finite', `activation at position ${frame.position} is not finite`)
  }
  header.setUint32(36, frameChecksum(words, HEADER_WORDS, CHECKSUM_WORD), true)
  return bytes
}

/**
 * Reads one frame from `bytes`, which must hold exactly that frame. The payload is a view on `bytes` where
 * its offset allows (a multiple of four), otherwise a copy. Every length is checked before use.
 * @throws CrowdError bad-frame, naming the field; non-finite
 */
export function decodeFrame(bytes: Uint8Array, expect?: FrameExpectation): Frame {
  if (bytes.length < FRAME_HEADER_BYTES) {
    throw badFrame(`length ${bytes.length} is below the header's ${FRAME_HEADER_BYTES}`)
  }
  if (bytes.length > FRAME_MAX_BYTES) throw badFrame(`length ${bytes.length} is above the limit`)
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const kind = readKind(header)
  const payloadBytes = header.getUint32(32, true)
  if (payloadBytes !== bytes.length - FRAME_HEADER_BYTES) {
    throw badFrame(`payload length ${payloadBytes} but ${bytes.length - FRAME_HEADER_BYTES} follow`)
  }
  const read: FrameShape = {
    kind,
    tokenCount: header.getUint32(20, true),
    dtype: header.getUint8(24),
    flags: header.getUint8(25),
    hiddenSize: header.getUint32(28, true),
    payloadBytes,
  }
  if (header.getUint16(26, true) !== 0 || header.getUint32(44, true) !== 0) {
    throw badFrame('reserved bytes are not zero')
  }
  checkShape(read, expect)
  const head: FrameHead = {
    // The header's 32 bits are what a SessionId is.
    session: header.getUint32(4, true) as SessionId,
    epoch: header.getUint32(8, true),
    step: header.getUint32(12, true),
    position: header.getUint32(16, true),
    computeMicros: header.getUint32(40, true),
  }
  if (head.position + read.tokenCount > PROMPT_MAX_TOKENS) {
    throw badFrame(`position ${head.position} + ${read.tokenCount} tokens is beyond any context`)
  }
  // Not slice(), which on Node's Buffer copies nothing.
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes)
  const words = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.length >> 2)
  if (frameChecksum(words, HEADER_WORDS, CHECKSUM_WORD) !== words[CHECKSUM_WORD])
    throw badFrame('checksum')
  return build(head, read, aligned, words)
}

function build(head: FrameHead, read: FrameShape, bytes: Uint8Array, words: Uint32Array): Frame {
  const start = bytes.byteOffset + FRAME_HEADER_BYTES
  switch (read.kind) {
    case 'activation':
      if (!allFinite(words, HEADER_WORDS)) {
        throw new CrowdError('non-finite', `activation at position ${head.position} is not finite`)
      }
      return {
        kind: 'activation',
        ...head,
        tokenCount: read.tokenCount,
        hiddenSize: read.hiddenSize,
        sample: read.flags === FLAG_SAMPLE,
        data: new Float32Array(bytes.buffer, start, read.tokenCount * read.hiddenSize),
      }
    case 'token':
      return { kind: 'token', ...head, token: words[HEADER_WORDS]! }
  }
}

type Shape = { dtype: number; tokenCount: number; hiddenSize: number; payloadBytes: number }

function shapeOf(frame: Frame): Shape {
  const dtype = dtypeOf(frame.kind)
  switch (frame.kind) {
    case 'activation':
      return {
        dtype,
        tokenCount: frame.tokenCount,
        hiddenSize: frame.hiddenSize,
        payloadBytes: frame.data.byteLength,
      }
    case 'token':
      return { dtype, tokenCount: 1, hiddenSize: 0, payloadBytes: 4 }
  }
}

/** A frame that this side is about to send must pass the checks that the other side makes. */
function checkHead(frame: Frame, shape: Shape): void {
  const { session, epoch, step, position, computeMicros } = frame
  for (const [name, value] of Object.entries({ session, epoch, step, position, computeMicros })) {
    if (!isU32(value)) throw badFrame(`${name} ${value} isn't an unsigned 32-bit number`)
  }
  if (frame.kind === 'token' && !isU32(frame.token)) throw badFrame(`token ${frame.token}`)
  if (position + shape.tokenCount > PROMPT_MAX_TOKENS) throw badFrame(`position ${position}`)
  if (FRAME_HEADER_BYTES + shape.payloadBytes > FRAME_MAX_BYTES) {
    throw badFrame(`payload length ${shape.payloadBytes} is above the limit`)
  }
  checkShape({ kind: frame.kind, flags: 0, ...shape }, undefined)
}

function writePayload(frame: Frame, bytes: Uint8Array<ArrayBuffer>): void {
  if (frame.kind === 'activation') {
    new Float32Array(bytes.buffer, FRAME_HEADER_BYTES).set(frame.data)
  } else {
    new DataView(bytes.buffer).setUint32(FRAME_HEADER_BYTES, frame.token, true)
  }
}

function isU32(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff
}
