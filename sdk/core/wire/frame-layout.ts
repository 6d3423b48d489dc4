import { CrowdError } from '../errors.ts'

/** The bytes of a frame: a fixed little-endian header, then the payload. The table is in PROTOCOL.md. */
export const FRAME_MAGIC = 0x4943 // "CI"
/** Raised whenever a byte of the data plane changes its meaning; link hellos carry it too. */
export const WIRE_VERSION = 1
export const FRAME_HEADER_BYTES = 48

/** 3 and 4 are reserved and refused. */
export const KIND_CODES = { activation: 1, token: 2 } as const
/** f16 has its code reserved; it is refused until both ends agree on it at session open. */
const DTYPE_CODES = { f32: 1, f16: 2, u32: 3 } as const
export const FLAG_SAMPLE = 1
export const HEADER_WORDS = FRAME_HEADER_BYTES / 4
export const CHECKSUM_WORD = 9

export type FrameKind = keyof typeof KIND_CODES

/** What the receiving stage is able to take. */
export type FrameExpectation = { readonly hiddenSize: number; readonly maxTokens: number }

/** What a header says about its payload. */
export type FrameShape = {
  readonly kind: FrameKind
  readonly dtype: number
  readonly flags: number
  readonly tokenCount: number
  readonly hiddenSize: number
  readonly payloadBytes: number
}

/** Checks magic, version and kind, which come first. @throws CrowdError bad-frame */
export function readKind(header: DataView): FrameKind {
  const magic = header.getUint16(0, true)
  if (magic !== FRAME_MAGIC) throw badFrame(`magic 0x${magic.toString(16)}`)
  const version = header.getUint8(2)
  if (version !== WIRE_VERSION)
    throw badFrame(`version ${version}, this side speaks ${WIRE_VERSION}`)
  const code = header.getUint8(3)
  switch (code) {
    case KIND_CODES.activation:
      return 'activation'
    case KIND_CODES.token:
      return 'token'
    default:
      throw badFrame(`kind ${code}`)
  }
}

/** Checks that a header agrees with itself and, where given, with what this stage takes. @throws CrowdError bad-frame */
export function checkShape(read: FrameShape, expect: FrameExpectation | undefined): void {
  const dtype = dtypeOf(read.kind)
  if (read.dtype !== dtype) throw badFrame(`dtype ${read.dtype} in a frame of kind ${read.kind}`)
  const flags = read.kind === 'activation' ? FLAG_SAMPLE : 0
  if ((read.flags & ~flags) !== 0)
    throw badFrame(`flags ${read.flags} in a frame of kind ${read.kind}`)
  if (read.kind === 'activation') {
    checkActivation(read, expect)
    return
  }
  if (read.tokenCount !== 1) throw badFrame(`token count ${read.tokenCount}`)
  if (read.hiddenSize !== 0) throw badFrame(`hidden size ${read.hiddenSize}`)
  if (read.payloadBytes !== 4) throw badFrame(`payload length ${read.payloadBytes} of a token`)
}

function checkActivation(read: FrameShape, expect: FrameExpectation | undefined): void {
  if (read.tokenCount === 0 || read.hiddenSize === 0) {
    throw badFrame(`token count ${read.tokenCount}, hidden size ${read.hiddenSize}`)
  }
  // Both are 32-bit, so the product is exact in a double only below 2^53; the comparison is safe either way.
  if (read.tokenCount * read.hiddenSize * 4 !== read.payloadBytes) {
    throw badFrame(
      `payload length ${read.payloadBytes} isn't ${read.tokenCount} x ${read.hiddenSize} floats`,
    )
  }
  if (expect === undefined) return
  if (read.hiddenSize !== expect.hiddenSize) {
    throw badFrame(`hidden size ${read.hiddenSize}, this stage takes ${expect.hiddenSize}`)
  }
  if (read.tokenCount > expect.maxTokens) {
    throw badFrame(`token count ${read.tokenCount}, this stage takes ${expect.maxTokens} at once`)
  }
}

/** The one dtype that a kind has. */
export function dtypeOf(kind: FrameKind): number {
  return kind === 'activation' ? DTYPE_CODES.f32 : DTYPE_CODES.u32
}

export function badFrame(what: string): CrowdError {
  return new CrowdError('bad-frame', `bad frame: ${what}`)
}
