import { describe, expect, it } from 'vitest'
import { randomAt } from '../sampling/random.ts'
import { createDetokenizer } from './detokenizer.ts'
import { createStopMatcher } from './stop-matcher.ts'
import { createTextStream } from './text-stream.ts'

/** A decoder over tokens that are byte strings, as byte-level BPE is. */
function byteDecoder(tokens: readonly Uint8Array[]): (ids: readonly number[]) => string {
  return (ids) => {
    const bytes = ids.flatMap((id) => [...(tokens[id] ?? [])])
    return new TextDecoder('utf-8').decode(Uint8Array.from(bytes))
  }
}

/** A decoder with byte fallback: runs of byte tokens are one text, or one mark per byte when invalid. */
function fallbackDecoder(tokens: readonly Uint8Array[]): (ids: readonly number[]) => string {
  return (ids) => {
    let text = ''
    let run: number[] = []
    const close = (): void => {
      try {
        text += new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(run))
      } catch {
        text += '\uFFFD'.repeat(run.length)
      }
      run = []
    }
    for (const id of ids) {
      const bytes = tokens[id] ?? new Uint8Array(0)
      if (bytes.length === 1 && (bytes[0] ?? 0) >= 0x80) run.push(bytes[0] ?? 0)
      else {
        close()
        text += new TextDecoder().decode(bytes)
      }
    }
    close()
    return text
  }
}

/** Cuts bytes into tokens of 1 to `longest` bytes. */
function cut(bytes: Uint8Array, seed: number, longest: number): Uint8Array[] {
  const tokens: Uint8Array[] = []
  for (let start = 0; start < bytes.length;) {
    const size = 1 + Math.floor(randomAt(seed, start) * longest)
    tokens.push(bytes.slice(start, start + size))
    start += size
  }
  return tokens
}

const PARTS = [
  'a',
  'the ',
  'é',
  'ü',
  '한국',
  '👩‍👩‍👧',
  '🙂',
  ' ',
  '\n',
  'e\u0301',
  'STOP',
  '</s>',
  '\uFFFD',
  '日本',
]

function randomText(seed: number, parts: number): string {
  let text = ''
  for (let i = 0; i < parts; i++) text += PARTS[Math.floor(randomAt(seed, i) * PARTS.length)] ?? ''
  return text
}

function stream(
  decode: (ids: readonly number[]) => string,
  count: number,
  stops: string[],
): string {
  const { push, end } = createTextStream({ decode, stops })
  let text = ''
  for (let id = 0; id < count; id++) {
    const step = push(id)
    text += step.text
    if (step.stopped) return text
  }
  return text + end().text
}

/** The specification: character by character, cut at the stop string that is completed first. */
function cutAtStop(text: string, stops: readonly string[]): string {
  for (let end = 1; end <= text.length; end++) {
    const lengths = stops.filter((stop) => text.slice(0, end).endsWith(stop)).map((s) => s.length)
    if (lengths.length > 0) return text.slice(0, end - Math.max(...lengths))
  }
  return text
}

describe('text stream', () => {
  const stopSets = [[], ['STOP'], ['TOP', 'STOPa', '🙂'], ['</s>', ' the'], ['aa', 'é한']]

  it('gives the same text for any cut into tokens', () => {
    for (let seed = 0; seed < 400; seed++) {
      const text = randomText(seed, 1 + (seed % 60))
      const tokens = cut(new TextEncoder().encode(text), seed, 1 + (seed % 7))
      const stops = stopSets[seed % stopSets.length] ?? []
      const got = stream(byteDecoder(tokens), tokens.length, stops)
      expect(got, `seed ${seed}`).toBe(cutAtStop(text, stops))
    }
  })

  it('gives what decoding at once gives for broken bytes', () => {
    for (let seed = 0; seed < 400; seed++) {
      const bytes = new TextEncoder().encode(randomText(seed, 30))
      for (let hit = 0; hit < 6; hit++) {
        bytes[Math.floor(randomAt(seed, 500 + hit) * bytes.length)] = Math.floor(
          randomAt(seed, 600 + hit) * 256,
        )
      }
      const tokens = cut(bytes, seed, 1 + (seed % 4))
      const decode = byteDecoder(tokens)
      const whole = decode(tokens.map((_, id) => id))
      expect(stream(decode, tokens.length, []), `seed ${seed}`).toBe(whole)
    }
  })

  it('gives the same text with byte fallback', () => {
    for (let seed = 0; seed < 200; seed++) {
      const text = randomText(seed, 40)
      const tokens = cut(new TextEncoder().encode(text), seed, 1)
      expect(stream(fallbackDecoder(tokens), tokens.length, []), `seed ${seed}`).toBe(text)
    }
  })

  it('keeps decoding cheap: the window does not grow with the text', () => {
    const tokens = cut(new TextEncoder().encode(randomText(3, 400)), 3, 5)
    const decode = byteDecoder(tokens)
    let longest = 0
    const watched = (ids: readonly number[]): string => {
      longest = Math.max(longest, ids.length)
      return decode(ids)
    }
    stream(watched, tokens.length, [])
    expect(longest).toBeLessThan(64)
  })
})

describe('detokenizer', () => {
  it('holds only the incomplete character', () => {
    const bytes = new TextEncoder().encode('ab🙂')
    const tokens = [bytes.slice(0, 3), bytes.slice(3, 5), bytes.slice(5)]
    const { push, flush } = createDetokenizer(byteDecoder(tokens))
    expect([push(0), push(1), push(2), flush()]).toEqual(['ab', '', '🙂', ''])
  })

  it('gives out what stays incomplete at the end', () => {
    const tokens = [Uint8Array.of(0x61, 0xf0, 0x9f)]
    const { push, flush } = createDetokenizer(byteDecoder(tokens))
    expect([push(0), flush(), flush()]).toEqual(['a', '\uFFFD', ''])
  })

  it('does not hold for ever: endless broken bytes are given out', () => {
    const { push } = createDetokenizer(byteDecoder([Uint8Array.of(0xff)]))
    let text = ''
    for (let i = 0; i < 100; i++) text += push(0)
    expect(text.length).toBeGreaterThanOrEqual(90)
  })
})

describe('stop matcher', () => {
  it('holds only a suffix that may become a stop string', () => {
    const { push, flush } = createStopMatcher(['</s>', 'END'])
    expect(push('x<')).toEqual({ text: 'x', stopped: false })
    expect(push('/')).toEqual({ text: '', stopped: false })
    expect(push('p E')).toEqual({ text: '</p ', stopped: false })
    expect(flush()).toBe('E')
  })

  it('takes what is completed first, whatever the chunks', () => {
    expect(createStopMatcher(['abcd', 'bc']).push('abcd')).toEqual({ text: 'a', stopped: true })
    const slow = createStopMatcher(['abcd', 'bc'])
    expect([slow.push('ab').text, slow.push('c')]).toEqual(['', { text: 'a', stopped: true }])
  })

  it('stays silent after a stop', () => {
    const matcher = createStopMatcher(['.'])
    expect(matcher.push('a.b')).toEqual({ text: 'a', stopped: true })
    expect(matcher.push('c')).toEqual({ text: '', stopped: true })
    expect(matcher.flush()).toBe('')
  })

  it('ignores empty stop strings', () => {
    expect(createStopMatcher(['']).push('abc')).toEqual({ text: 'abc', stopped: false })
  })
})
