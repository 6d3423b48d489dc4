import { CrowdError } from '../errors.ts'
import { WIRE_VERSION } from './frame-layout.ts'

/** First byte of every message on a link. */
export const LINK_MESSAGE = {
  hello: 1,
  ack: 2,
  chunk: 3,
  credit: 4,
  ping: 5,
  pong: 6,
  bye: 7,
} as const

export type LaneName = 'control' | 'bulk'
const LANE_CODES = { control: 0, bulk: 1 } as const
/** Tells a stray message (another program's, another lane's) from ours. */
const HELLO_MAGIC = 0x44575243 // "CRWD"
export const BYE_MAX_BYTES = 400

/** What the two ends of a link say to each other, besides the chunks of frames. */
export type LinkMessage =
  | {
      readonly kind: 'hello'
      readonly version: number
      readonly lane: LaneName
      readonly attempt: number
      /** Bytes of bulk that the sender of this hello lets the other end have in flight. */
      readonly windowBytes: number
    }
  | { readonly kind: 'ack'; readonly lane: LaneName; readonly attempt: number }
  /** All bulk message bytes consumed since the link opened, modulo 2^32. */
  | { readonly kind: 'credit'; readonly consumed: number }
  | { readonly kind: 'ping' | 'pong'; readonly number: number }
  | { readonly kind: 'bye'; readonly reason: string }
  /** Left to the reassembler. */
  | { readonly kind: 'chunk' }

type Written = Exclude<LinkMessage, { kind: 'chunk' }>

export function writeLinkMessage(message: Written): Uint8Array<ArrayBuffer> {
  switch (message.kind) {
    case 'hello':
      return words(
        LINK_MESSAGE.hello | (LANE_CODES[message.lane] << 8) | (message.version << 16),
        HELLO_MAGIC,
        message.attempt,
        message.windowBytes,
      )
    case 'ack':
      return words(LINK_MESSAGE.ack | (LANE_CODES[message.lane] << 8), message.attempt)
    case 'credit':
      return words(LINK_MESSAGE.credit, message.consumed)
    case 'ping':
    case 'pong':
      return words(LINK_MESSAGE[message.kind], message.number)
    case 'bye': {
      // A code point cut in two by the byte limit is replaced at the reader.
      const text = new TextEncoder().encode(message.reason).subarray(0, BYE_MAX_BYTES)
      const bytes = new Uint8Array(4 + text.length)
      bytes[0] = LINK_MESSAGE.bye
      bytes.set(text, 4)
      return bytes
    }
  }
}

/** Reads the first byte and what belongs to it. @throws CrowdError bad-frame */
export function readLinkMessage(bytes: Uint8Array): LinkMessage {
  const code = bytes[0]
  if (code === undefined) throw bad('no bytes')
  if (code === LINK_MESSAGE.chunk) return { kind: 'chunk' }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  switch (code) {
    case LINK_MESSAGE.hello:
      return readHello(view)
    case LINK_MESSAGE.ack:
      return { kind: 'ack', lane: readLane(view), attempt: readWord(view, 'ack') }
    case LINK_MESSAGE.credit:
      return { kind: 'credit', consumed: readWord(view, 'credit') }
    case LINK_MESSAGE.ping:
      return { kind: 'ping', number: readWord(view, 'ping') }
    case LINK_MESSAGE.pong:
      return { kind: 'pong', number: readWord(view, 'pong') }
    case LINK_MESSAGE.bye:
      return { kind: 'bye', reason: readReason(bytes) }
    default:
      throw bad(`kind ${code}`)
  }
}

/** The first hello of this build on `lane`. */
export function helloFor(lane: LaneName, attempt: number, windowBytes: number) {
  return writeLinkMessage({ kind: 'hello', version: WIRE_VERSION, lane, attempt, windowBytes })
}

function readHello(view: DataView): LinkMessage {
  if (view.byteLength !== 16) throw bad(`hello of ${view.byteLength} bytes`)
  if (view.getUint32(4, true) !== HELLO_MAGIC) throw bad('hello without its magic')
  return {
    kind: 'hello',
    version: view.getUint16(2, true),
    lane: readLane(view),
    attempt: view.getUint32(8, true),
    windowBytes: view.getUint32(12, true),
  }
}

function readLane(view: DataView): LaneName {
  const code = view.byteLength > 1 ? view.getUint8(1) : -1
  if (code === LANE_CODES.control) return 'control'
  if (code === LANE_CODES.bulk) return 'bulk'
  throw bad(`lane ${code}`)
}

function readWord(view: DataView, kind: string): number {
  if (view.byteLength !== 8) throw bad(`${kind} of ${view.byteLength} bytes`)
  return view.getUint32(4, true)
}

function readReason(bytes: Uint8Array): string {
  if (bytes.length < 4 || bytes.length > 4 + BYE_MAX_BYTES)
    throw bad(`bye of ${bytes.length} bytes`)
  return new TextDecoder().decode(bytes.subarray(4))
}

function words(...values: number[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(values.length * 4)
  const view = new DataView(bytes.buffer)
  values.forEach((value, index) => view.setUint32(index * 4, value, true))
  return bytes
}

function bad(what: string): CrowdError {
  return new CrowdError('bad-frame', `bad link message: ${what}`)
}
