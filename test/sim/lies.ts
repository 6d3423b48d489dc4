import { frameChecksum } from '../../sdk/core/wire/checksum.ts'
import { CHUNK_PREFIX_BYTES } from '../../sdk/core/wire/chunker.ts'
import {
  CHECKSUM_WORD,
  FLAG_SAMPLE,
  FRAME_MAGIC,
  HEADER_WORDS,
  KIND_CODES,
} from '../../sdk/core/wire/frame-layout.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'

/** What a liar makes of what it would honestly say. All of it can be told from the truth without computing anything again. */
export type Lie = {
  /** To the host: what is said instead. */
  message?(message: ClientMessage): readonly ClientMessage[]
  /** To the next device: a message of the bulk lane, which may be changed in place, or kept back. */
  frame?(message: Uint8Array): FrameFate
}

type FrameFate = 'honest' | 'changed' | 'kept'

export const LIES = [
  'lie',
  'lie-nan',
  'lie-shape',
  'lie-mute',
  'lie-hole',
  'lie-back',
  'lie-sample',
  'lie-no-sample',
  'lie-token',
  'lie-position',
  'lie-end',
  'lie-rows',
  'lie-session',
  'lie-numbers',
] as const

/** `lie-pieces`: told by a device that gives pieces to another one. */
export type LieKind = (typeof LIES)[number] | 'lie-pieces'

/** Kinds that only one of the stages can tell; any of them where nothing is said. */
export const TOLD_BY: Partial<Record<LieKind, 'last' | 'other'>> = {
  'lie-token': 'last',
  'lie-position': 'last',
  'lie-end': 'last',
  'lie-nan': 'other',
  'lie-shape': 'other',
  'lie-sample': 'other',
  'lie-no-sample': 'other',
  'lie-session': 'other',
}

/** More than any vocabulary, context or device has. */
const ABSURD = { token: 9_999_999, rows: 131_072, ms: 86_400_000, bytes: Number.MAX_SAFE_INTEGER }

/** `told`: called for each lie that goes out. */
export function createLie(kind: LieKind, told: () => void): Lie {
  const { message, frame } = MAKERS[kind]
  return {
    ...(message && {
      message(honest) {
        const said = message(honest)
        if (said === null) return [honest]
        told()
        return said
      },
    }),
    ...(frame && {
      frame(bytes) {
        const fate = frame(bytes)
        if (fate !== 'honest') told()
        return fate
      },
    }),
  }
}

type Maker = {
  /** null: nothing to lie about. */
  message?(honest: ClientMessage): readonly ClientMessage[] | null
  frame?(bytes: Uint8Array): FrameFate
}

const MAKERS: Readonly<Record<LieKind, Maker>> = {
  lie: { frame: garble },
  'lie-mute': { frame: (bytes) => (isFrame(bytes) ? 'kept' : 'honest') },
  'lie-nan': { frame: (bytes) => forge(bytes, (view) => view.setFloat32(48, Number.NaN, true)) },
  'lie-shape': {
    frame: (bytes) =>
      forge(bytes, (view) => {
        view.setUint32(20, view.getUint32(20, true) * 2, true)
        view.setUint32(28, view.getUint32(28, true) / 2, true)
      }),
  },
  'lie-hole': {
    frame: (bytes) =>
      forge(bytes, (view) => view.setUint32(16, view.getUint32(16, true) + 7, true), 'any'),
  },
  'lie-back': {
    frame: (bytes) =>
      forge(
        bytes,
        (view) => view.setUint32(16, Math.max(0, view.getUint32(16, true) - 3), true),
        'any',
      ),
  },
  'lie-sample': { frame: (bytes) => forge(bytes, (view) => view.setUint8(25, FLAG_SAMPLE)) },
  'lie-no-sample': { frame: (bytes) => forge(bytes, (view) => view.setUint8(25, 0)) },
  'lie-token': {
    message: (honest) =>
      honest.kind === 'session-token'
        ? [{ ...honest, sampled: { ...honest.sampled, token: ABSURD.token } }]
        : null,
  },
  'lie-position': {
    message: (honest) =>
      honest.kind === 'session-token' ? [{ ...honest, position: honest.position + 1 }] : null,
  },
  'lie-end': {
    message(honest) {
      if (honest.kind !== 'session-token') return null
      const { session, epoch } = honest
      return [{ kind: 'session-end', session, epoch, reason: 'stop' }]
    },
  },
  'lie-rows': {
    message: (honest) =>
      honest.kind === 'session-ready'
        ? [{ ...honest, cached: honest.cached + 7, kept: honest.cached + 7 }]
        : null,
  },
  // It says what it has no part in by itself.
  'lie-session': {},
  'lie-numbers': { message: exaggerate },
  'lie-pieces': { frame: (bytes) => (isPart(bytes) ? garble(bytes) : 'honest') },
}

/** Hellos are too short to be changed. */
function garble(bytes: Uint8Array): FrameFate {
  const at = bytes.length - 1
  if (at <= 60) return 'honest'
  bytes[at] = (bytes[at] ?? 0) ^ 0x55
  return 'changed'
}

/** Of the ring, from its first byte: not a message about pieces. */
function isFrame(bytes: Uint8Array): boolean {
  if (bytes.length < CHUNK_PREFIX_BYTES + HEADER_WORDS * 4) return false
  const view = new DataView(bytes.buffer, bytes.byteOffset + CHUNK_PREFIX_BYTES)
  return view.getUint16(0, true) === FRAME_MAGIC
}

/** Of a piece. */
function isPart(bytes: Uint8Array): boolean {
  return !isFrame(bytes) && bytes[CHUNK_PREFIX_BYTES] === 3
}

/** A frame that is whole and wrong: its checksum is right. Honest where the change changes nothing. */
function forge(
  bytes: Uint8Array,
  change: (frame: DataView) => void,
  which: 'activation' | 'any' = 'activation',
): FrameFate {
  const length = bytes.length - CHUNK_PREFIX_BYTES
  if (!isFrame(bytes) || length % 4 !== 0) return 'honest'
  const frame = new DataView(bytes.buffer, bytes.byteOffset + CHUNK_PREFIX_BYTES, length)
  if (which === 'activation' && frame.getUint8(3) !== KIND_CODES.activation) return 'honest'
  change(frame)
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset + CHUNK_PREFIX_BYTES, length / 4)
  const checksum = frameChecksum(words, HEADER_WORDS, CHECKSUM_WORD)
  if (checksum === words[CHECKSUM_WORD]) return 'honest'
  frame.setUint32(CHECKSUM_WORD * 4, checksum, true)
  return 'changed'
}

function exaggerate(honest: ClientMessage): readonly ClientMessage[] | null {
  const { rows, ms, bytes } = ABSURD
  if (honest.kind === 'beat') {
    const sessions = honest.sessions.map((one) => ({ ...one, position: rows }))
    return [{ ...honest, computing: true, sessions }]
  }
  if (honest.kind === 'session-timings') {
    const times = { firstTokenMs: ms, lapMs: ms, computeMs: ms, hopMs: ms }
    const timings = { promptTokens: rows, tokens: rows, hops: 1_000, ...times }
    return [{ ...honest, timings }]
  }
  if (honest.kind === 'stage-stats') return [{ ...honest, steps: bytes, tokens: bytes, stepMs: ms }]
  if (honest.kind === 'session-step') return [{ ...honest, computeMs: ms }]
  return honest.kind === 'link-state' ? [{ ...honest, rttMs: ms }] : null
}
