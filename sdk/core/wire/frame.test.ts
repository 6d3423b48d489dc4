import { describe, expect, test } from 'vitest'
import type { SessionId } from '../ids.ts'
import { FRAME_MAX_BYTES, PROMPT_MAX_TOKENS } from '../limits.ts'
import { decodeFrame, encodeFrame, type ActivationFrame, type Frame } from './frame.ts'
import { FRAME_HEADER_BYTES } from './frame-layout.ts'

// A number that a test chooses is a session without a parser.
const head = { session: 0x11223344 as SessionId, epoch: 2, step: 3, position: 4, computeMicros: 5 }

const activation: ActivationFrame = {
  kind: 'activation',
  ...head,
  tokenCount: 2,
  hiddenSize: 3,
  sample: true,
  data: Float32Array.of(1, -2, 0.5, 1e-30, -0, 3.25),
}

describe('bytes', () => {
  test('FR1 keeps the golden bytes of an activation', () => {
    expect(hex(encodeFrame(activation))).toBe(
      '43490101443322110200000003000000' +
        '04000000020000000101000003000000' +
        '18000000' +
        '1d3406be' + // the checksum, computed by another program from the rule
        '0500000000000000' +
        '0000803f000000c00000003f6042a20d0000008000005040',
    )
  })

  test('FR1 keeps the golden bytes of a token', () => {
    const token = encodeFrame({ kind: 'token', ...head, token: 0xa0b0c0d0 })
    expect(hex(token)).toBe(
      '43490102443322110200000003000000' +
        '04000000010000000300000000000000' +
        '04000000' +
        '6582dfe2' +
        '0500000000000000d0c0b0a0',
    )
  })

  const frames: Frame[] = [
    activation,
    { ...activation, sample: false },
    { kind: 'token', ...head, token: 0xffff_ffff },
    { kind: 'token', ...head, session: 0xffff_ffff as SessionId, token: 0 },
  ]
  for (const frame of frames) {
    test(`FR1 gives back what was written: ${frame.kind}`, () => {
      expect(decodeFrame(encodeFrame(frame))).toEqual(frame)
    })
  }

  test('FR2 lends the payload in place where its offset allows, and copies where not', () => {
    const bytes = encodeFrame(activation)
    const shifted = new Uint8Array(bytes.length + 16)
    shifted.set(bytes, 16)
    const inPlace = decodeFrame(shifted.subarray(16))
    expect(inPlace).toMatchObject({ data: { buffer: shifted.buffer } })
    shifted.set(bytes, 1)
    const copied = decodeFrame(shifted.subarray(1, 1 + bytes.length))
    expect(copied).toEqual(activation)
    expect(decodeFrame(Buffer.from(shifted.buffer, 1, bytes.length))).toEqual(activation)
  })

  test('FR2 copies what it sends, so that a buffer may be reused', () => {
    const data = Float32Array.of(1, 2, 3, 4, 5, 6)
    const bytes = encodeFrame({ ...activation, data })
    data.fill(0)
    expect(decodeFrame(bytes)).toMatchObject({ data: Float32Array.of(1, 2, 3, 4, 5, 6) })
  })
})

describe('refusals', () => {
  const lies: readonly [string, RegExp, (view: DataView) => void][] = [
    ['magic', /magic/, (view) => view.setUint16(0, 0x1234, true)],
    ['version', /version 9/, (view) => view.setUint8(2, 9)],
    ['kind 0', /kind 0/, (view) => view.setUint8(3, 0)],
    ['kind 3, which is reserved', /kind 3/, (view) => view.setUint8(3, 3)],
    ['kind 4, which is reserved', /kind 4/, (view) => view.setUint8(3, 4)],
    ['kind 77', /kind 77/, (view) => view.setUint8(3, 77)],
    ['f16, which nobody agreed on', /dtype 2/, (view) => view.setUint8(24, 2)],
    ['dtype 200', /dtype 200/, (view) => view.setUint8(24, 200)],
    ['flags', /flags 3/, (view) => view.setUint8(25, 3)],
    ['reserved bytes', /reserved/, (view) => view.setUint16(26, 1, true)],
    ['reserved word', /reserved/, (view) => view.setUint32(44, 1, true)],
    ['payload length', /payload length 20 but 24/, (view) => view.setUint32(32, 20, true)],
    ['a huge payload length', /payload length/, (view) => view.setUint32(32, 0xffff_fffc, true)],
    ['token count', /isn't 1 x 3/, (view) => view.setUint32(20, 1, true)],
    ['no tokens', /token count 0/, (view) => view.setUint32(20, 0, true)],
    ['hidden size', /isn't 2 x 4/, (view) => view.setUint32(28, 4, true)],
    ['no hidden size', /hidden size 0/, (view) => view.setUint32(28, 0, true)],
    [
      'a product that wraps in 32 bits',
      /isn't/,
      (view) => {
        view.setUint32(20, 0x8000_0000, true)
        view.setUint32(28, 0x8000_0000, true)
      },
    ],
    ['position', /position/, (view) => view.setUint32(16, PROMPT_MAX_TOKENS - 1, true)],
    ['session', /checksum/, (view) => view.setUint32(4, 1, true)],
    ['a float', /checksum/, (view) => view.setFloat32(52, 9, true)],
    ['the checksum', /checksum/, (view) => view.setUint32(36, 0, true)],
  ]
  for (const [what, message, spoil] of lies) {
    test(`FR3 refuses a frame that lies about ${what}`, () => {
      const bytes = encodeFrame(activation)
      spoil(new DataView(bytes.buffer))
      expect(() => decodeFrame(bytes)).toThrow(message)
      expect(codeOf(() => decodeFrame(bytes))).toBe('bad-frame')
    })
  }

  test('FR3 refuses every shortened and lengthened frame', () => {
    const bytes = encodeFrame(activation)
    for (let length = 0; length < bytes.length; length += 1) {
      expect(codeOf(() => decodeFrame(bytes.subarray(0, length)))).toBe('bad-frame')
    }
    const longer = new Uint8Array(bytes.length + 1)
    longer.set(bytes)
    expect(codeOf(() => decodeFrame(longer))).toBe('bad-frame')
    expect(codeOf(() => decodeFrame(new Uint8Array(FRAME_MAX_BYTES + 1)))).toBe('bad-frame')
  })

  test('FR3 notices any single flipped bit', () => {
    const bytes = encodeFrame(activation)
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      expect(
        codeOf(() => decodeFrame(bytes)),
        `bit ${bit}`,
      ).toBe('bad-frame')
      bytes[bit >> 3]! ^= 1 << (bit & 7)
    }
  })

  test('FR3 refuses a shape that this stage does not take', () => {
    const bytes = encodeFrame(activation)
    const expect3 = { hiddenSize: 3, maxTokens: 2 }
    expect(decodeFrame(bytes, expect3)).toEqual(activation)
    expect(() => decodeFrame(bytes, { ...expect3, hiddenSize: 4 })).toThrow(/takes 4/)
    expect(() => decodeFrame(bytes, { ...expect3, maxTokens: 1 })).toThrow(/takes 1 at once/)
  })

  test('FR3 refuses shapes on the other kinds', () => {
    const token = encodeFrame({ kind: 'token', ...head, token: 1 })
    new DataView(token.buffer).setUint32(20, 2, true)
    expect(() => decodeFrame(token)).toThrow(/token count 2/)
    const floats = encodeFrame({ kind: 'token', ...head, token: 1 })
    new DataView(floats.buffer).setUint8(24, 1)
    expect(() => decodeFrame(floats)).toThrow(/dtype 1/)
    const longer = new Uint8Array(FRAME_HEADER_BYTES + 8)
    longer.set(encodeFrame({ kind: 'token', ...head, token: 1 }))
    new DataView(longer.buffer).setUint32(32, 8, true)
    expect(() => decodeFrame(longer)).toThrow(/payload length 8 of a token/)
  })

  test('FR3 refuses the reserved kinds even with a right checksum', () => {
    for (const code of [3, 4]) {
      const bytes = encodeFrame({ kind: 'token', ...head, token: 1 })
      const view = new DataView(bytes.buffer)
      view.setUint8(3, code)
      view.setUint32(36, checksumByTheBook(bytes), true)
      expect(() => decodeFrame(bytes)).toThrow(`kind ${code}`)
    }
  })

  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    test(`FR4 refuses ${value} on the way out and on the way in`, () => {
      const data = Float32Array.of(1, 2, value, 4, 5, 6)
      expect(codeOf(() => encodeFrame({ ...activation, data }))).toBe('non-finite')
      const bytes = forge(value)
      expect(codeOf(() => decodeFrame(bytes))).toBe('non-finite')
    })
  }

  test('FR5 refuses to write what the other end would refuse', () => {
    const wrong: Frame[] = [
      { ...activation, tokenCount: 3 },
      { ...activation, hiddenSize: 0, data: new Float32Array(0) },
      { ...activation, epoch: -1 },
      { ...activation, step: 1.5 },
      { ...activation, computeMicros: 2 ** 32 },
      { ...activation, position: PROMPT_MAX_TOKENS - 1 },
      { kind: 'token', ...head, token: -1 },
    ]
    for (const frame of wrong) expect(codeOf(() => encodeFrame(frame))).toBe('bad-frame')
  })
})

/** A frame with a right checksum over a float that the encoder refuses: two frames with the same words but one. */
function forge(value: number): Uint8Array {
  const bytes = encodeFrame(activation)
  const view = new DataView(bytes.buffer)
  view.setFloat32(FRAME_HEADER_BYTES + 8, value, true)
  view.setUint32(36, checksumByTheBook(bytes), true)
  return bytes
}

/** The rule of PROTOCOL.md, written a second time. */
function checksumByTheBook(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer)
  const words = Array.from({ length: bytes.length / 4 }, (_, index) =>
    view.getUint32(index * 4, true),
  )
  const mix = (hash: number, word: number) => {
    const product = Number((BigInt((hash ^ word) >>> 0) * 0x9e3779b1n) & 0xffff_ffffn)
    return (product ^ (product >>> 15)) >>> 0
  }
  const header = words.slice(0, 12).filter((_, index) => index !== 9)
  const start = header.reduce(mix, 0x811c9dc5)
  const payload = words.slice(12)
  const inLanes = payload.length - (payload.length % 4)
  const lanes = [0, 1, 2, 3].map((lane) =>
    payload
      .filter((_, index) => (index < inLanes ? index % 4 === lane : lane === 0))
      .reduce(mix, (start + lane) >>> 0),
  )
  return lanes.reduce(mix)
}

function codeOf(work: () => unknown): unknown {
  try {
    work()
    return 'nothing thrown'
  } catch (thrown) {
    return (thrown as { code?: unknown }).code
  }
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
