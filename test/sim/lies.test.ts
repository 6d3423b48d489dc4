import { expect, test } from 'vitest'
import type { SessionId } from '../../sdk/core/ids.ts'
import { CHUNK_PREFIX_BYTES } from '../../sdk/core/wire/chunker.ts'
import { decodeFrame, encodeFrame } from '../../sdk/core/wire/frame.ts'
import { createLie, type LieKind } from './lies.ts'

const HIDDEN = 4
const head = { session: 7 as SessionId, epoch: 1, step: 0, position: 5, computeMicros: 0 }

/** What comes out of a liar for a frame of two rows, and how often it says that it lied. */
function lieWith(kind: LieKind) {
  const frame = encodeFrame({
    kind: 'activation',
    ...head,
    tokenCount: 2,
    hiddenSize: HIDDEN,
    sample: true,
    data: new Float32Array(2 * HIDDEN).fill(3),
  })
  const message = new Uint8Array(CHUNK_PREFIX_BYTES + frame.length)
  message.set(frame, CHUNK_PREFIX_BYTES)
  let told = 0
  const fate = createLie(kind, () => void (told += 1)).frame?.(message)
  return { fate, told, frame: message.slice(CHUNK_PREFIX_BYTES) }
}

test('forged frames are whole: only what they say is wrong', () => {
  const expected = { hiddenSize: HIDDEN, maxTokens: 32 }
  expect(() => decodeFrame(lieWith('lie').frame, expected)).toThrow(/checksum/)
  expect(() => decodeFrame(lieWith('lie-nan').frame, expected)).toThrow(/finite/)
  expect(() => decodeFrame(lieWith('lie-shape').frame, expected)).toThrow(/hidden size 2/)
  expect(decodeFrame(lieWith('lie-hole').frame, expected)).toMatchObject({ position: 12 })
  expect(decodeFrame(lieWith('lie-back').frame, expected)).toMatchObject({ position: 2 })
  expect(decodeFrame(lieWith('lie-no-sample').frame, expected)).toMatchObject({ sample: false })
})

test('what is no lie is left as it is and not counted', () => {
  expect(lieWith('lie-nan')).toMatchObject({ fate: 'changed', told: 1 })
  expect(lieWith('lie-mute')).toMatchObject({ fate: 'kept', told: 1 })
  // The frame has the mark already.
  expect(lieWith('lie-sample')).toMatchObject({ fate: 'honest', told: 0 })
  expect(lieWith('lie-pieces')).toMatchObject({ fate: 'honest', told: 0 })
  const token = createLie('lie-token', () => expect.unreachable())
  const leave = { kind: 'leave' } as const
  expect(token.message?.(leave)).toEqual([leave])
})
