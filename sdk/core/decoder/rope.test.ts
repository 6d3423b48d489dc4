import { describe, expect, it } from 'vitest'
import { inverseFrequencies, type RopeScaling } from './rope.ts'

const rope = (theta: number, size: number, scaling: RopeScaling): Float32Array =>
  inverseFrequencies({ theta, size, scaling })

describe('rotary frequencies', () => {
  it('fall geometrically from 1', () => {
    expect([...rope(10_000, 8, { kind: 'none' })]).toEqual([1, 0.1, 0.01, 0.001].map(Math.fround))
  })

  it('of Llama 3 keep the fast ones and slow the slow ones by the factor', () => {
    const scaling = {
      kind: 'llama3',
      factor: 8,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalContext: 8192,
    } as const
    const plain = rope(500_000, 128, { kind: 'none' })
    const scaled = rope(500_000, 128, scaling)
    expect(scaled[0]).toBe(plain[0])
    expect(scaled[63]).toBeCloseTo(plain[63]! / 8, 12)
    // In between they blend, and never grow.
    expect([...scaled].every((value, i) => value <= plain[i]! && value >= plain[i]! / 8.001)).toBe(
      true,
    )
  })
})
