import { describe, expect, test } from 'vitest'
import { helloFor, readLinkMessage, writeLinkMessage, type LinkMessage } from './link-message.ts'

type Written = Exclude<LinkMessage, { kind: 'chunk' }>

describe('link messages', () => {
  const golden: readonly [Written, number[]][] = [
    [
      { kind: 'hello', version: 1, lane: 'bulk', attempt: 2, windowBytes: 0x40000 },
      [1, 1, 1, 0, 0x43, 0x52, 0x57, 0x44, 2, 0, 0, 0, 0, 0, 4, 0],
    ],
    [{ kind: 'ack', lane: 'control', attempt: 7 }, [2, 0, 0, 0, 7, 0, 0, 0]],
    [{ kind: 'credit', consumed: 0x01020304 }, [4, 0, 0, 0, 4, 3, 2, 1]],
    [{ kind: 'ping', number: 5 }, [5, 0, 0, 0, 5, 0, 0, 0]],
    [{ kind: 'pong', number: 5 }, [6, 0, 0, 0, 5, 0, 0, 0]],
    [{ kind: 'bye', reason: 'ok é' }, [7, 0, 0, 0, 0x6f, 0x6b, 0x20, 0xc3, 0xa9]],
  ]
  for (const [message, bytes] of golden) {
    test(`HE2 keeps the golden bytes of ${message.kind}`, () => {
      expect([...writeLinkMessage(message)]).toEqual(bytes)
      expect(readLinkMessage(Uint8Array.from(bytes))).toEqual(message)
    })
  }

  test('HE2 greets with this build’s version', () => {
    expect(readLinkMessage(helloFor('control', 3, 9))).toEqual({
      kind: 'hello',
      version: 1,
      lane: 'control',
      attempt: 3,
      windowBytes: 9,
    })
  })

  test('HB5 cuts a reason that is too long, and never splits the reader', () => {
    const read = readLinkMessage(writeLinkMessage({ kind: 'bye', reason: 'é'.repeat(1_000) }))
    expect(read).toMatchObject({ kind: 'bye' })
  })

  const wrong: readonly [string, number[]][] = [
    ['nothing', []],
    ['kind 0', [0, 0, 0, 0]],
    ['kind 8', [8, 0, 0, 0]],
    ['a short hello', [1, 0, 1, 0]],
    ['a hello without magic', [1, 0, 1, 0, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 4, 0]],
    ['a hello on lane 2', [1, 2, 1, 0, 0x43, 0x52, 0x57, 0x44, 2, 0, 0, 0, 0, 0, 4, 0]],
    ['an ack without attempt', [2, 0, 0, 0]],
    ['an ack of one byte', [2]],
    ['a long credit', [4, 0, 0, 0, 1, 0, 0, 0, 0]],
    ['a ping without number', [5]],
    ['a bye without padding', [7]],
    ['a bye of a novel', [7, ...new Array<number>(500).fill(65)]],
  ]
  for (const [what, bytes] of wrong) {
    test(`CH4 refuses ${what}`, () => {
      expect(() => readLinkMessage(Uint8Array.from(bytes))).toThrow(
        expect.objectContaining({ code: 'bad-frame' }),
      )
    })
  }
})
