import { describe, expect, it } from 'vitest'
import { parseSafetensors, safetensorsHeaderBytes } from './safetensors.ts'

const entry = (dtype: string, shape: unknown, from: number, to: number): unknown => ({
  dtype,
  shape,
  data_offsets: [from, to],
})

function parse(header: unknown, dataBytes: number): ReturnType<typeof parseSafetensors> {
  const bytes = new TextEncoder().encode(
    typeof header === 'string' ? header : JSON.stringify(header),
  )
  return parseSafetensors(bytes, 8 + bytes.length + dataBytes, 'w.safetensors')
}

describe('safetensors', () => {
  it('gives type, shape and place in the file of every tensor', () => {
    const header = {
      __metadata__: { format: 'pt' },
      a: entry('F16', [2, 3], 0, 12),
      b: entry('F32', [], 12, 16),
      steps: entry('I64', [1], 16, 24),
    }
    const start = 8 + JSON.stringify(header).length
    expect([...parse(header, 24).values()]).toEqual([
      { name: 'a', type: 'f16', dims: [2, 3], offset: start, length: 12 },
      { name: 'b', type: 'f32', dims: [], offset: start + 12, length: 4 },
    ])
  })

  it.each([
    [
      'a size that is not the shape times the type',
      { a: entry('F32', [2], 0, 9) },
      /tensor a \[2\] has 9/,
    ],
    [
      'an end after the file',
      { a: entry('F32', [9], 0, 36) },
      /tensor a ends 4 bytes after the file/,
    ],
    ['an end before the start', { a: entry('F32', [1], 8, 4) }, /tensor a ends before it begins/],
    [
      'an overlap',
      { a: entry('F32', [2], 0, 8), late: entry('F32', [2], 4, 12) },
      /tensors a and late overlap/,
    ],
    ['a negative dimension', { a: entry('F32', [-1], 0, 4) }, /tensor a has a malformed entry/],
    ['a fractional offset', { a: entry('F32', [1], 0.5, 4) }, /tensor a has a malformed entry/],
    ['no entry at all', { a: 7 }, /tensor a has a malformed entry/],
    ['a header that is a list', [], /not a JSON object/],
    ['a header that is not JSON', '{"a":', /not JSON/],
  ])('refuses %s and names it', (_, header, message) => {
    expect(() => parse(header, 32)).toThrow(message)
  })

  it('does not trip over a tensor named like a part of every object', () => {
    expect(parse({ constructor: entry('F32', [1], 0, 4) }, 4).has('constructor')).toBe(true)
    expect(parse({ a: entry('toString', [1], 0, 4) }, 4).size).toBe(0)
  })

  it('checks the length of the header before reading it', () => {
    const prefix = (length: bigint): Uint8Array => {
      const bytes = new Uint8Array(8)
      new DataView(bytes.buffer).setBigUint64(0, length, true)
      return bytes
    }
    expect(safetensorsHeaderBytes(prefix(100n), 108, 'w')).toBe(100)
    expect(() => safetensorsHeaderBytes(prefix(101n), 108, 'w')).toThrow(/w is not a safetensors/)
    expect(() => safetensorsHeaderBytes(prefix(2n ** 63n), 2 ** 50, 'w')).toThrow(/not a safet/)
    expect(() => safetensorsHeaderBytes(new Uint8Array(3), 3, 'w')).toThrow(/too short/)
  })
})
