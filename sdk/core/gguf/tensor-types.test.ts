import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { halfToFloat } from '../tensor/float16.ts'
import { quantizeQ4 } from '../tensor/quantize-q4.ts'
import { asFloats } from '../tensor/views.ts'
import { halfAt } from './half.ts'
import { describeTensorType, findTensorType } from './tensor-types.ts'

type Blocks = {
  readonly type: number
  readonly valuesPerBlock: number
  readonly bytesPerBlock: number
  readonly bytes: string
  readonly values: string
}

const path = new URL('../../../test/fixtures/reference/gguf-blocks/blocks.json', import.meta.url)
// Cast: the fixture has a test of its own.
const fixture = JSON.parse(readFileSync(path, 'utf8')) as Record<string, Blocks>

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(base64, 'base64'))
}

describe('dequantising', () => {
  it.each(Object.entries(fixture))('%s gives what gguf-py gives, bit by bit', (name, blocks) => {
    const type = findTensorType(blocks.type)
    expect(type).toMatchObject({
      name,
      blockElements: blocks.valuesPerBlock,
      blockBytes: blocks.bytesPerBlock,
    })
    const want = asFloats(bytesOf(blocks.values))
    const got = new Float32Array(want.length)
    type!.dequantize(bytesOf(blocks.bytes), got)
    expect(new Uint32Array(got.buffer)).toEqual(new Uint32Array(want.buffer))
  })

  it('knows every type that the product promises', () => {
    const names = [0, 1, 30, 8, 2, 3, 6, 7, 12, 13, 14].map((id) => findTensorType(id)?.name)
    const promised = 'F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K'
    expect(names).toEqual(promised.split(' '))
    for (const name of promised.split(' ').slice(1)) expect(fixture).toHaveProperty(name)
  })

  it('names the types that it refuses', () => {
    expect(findTensorType(23)).toBeUndefined()
    expect([23, 39, 99].map(describeTensorType)).toEqual(['IQ4_XS', 'MXFP4', 'number 99'])
  })

  it('reads the halves of scales as the rest of the product does', () => {
    const bytes = new Uint8Array(2)
    for (let half = 0; half < 0x10000; half += 7) {
      bytes.set([half & 255, half >> 8])
      expect(halfAt(bytes, 0)).toBe(halfToFloat(half))
    }
  })

  it('Q4_0 becomes our 4-bit blocks without any loss', () => {
    const { bytes } = fixture['Q4_0']!
    const blocks = bytesOf(bytes)
    const count = blocks.length / 18
    // A quantiser that gives the extreme value the quantum -8, as every writer of this type does.
    for (let block = 0; block < count; block++) blocks[block * 18 + 2]! &= 0xf0
    const floats = new Float32Array(count * 32)
    findTensorType(2)!.dequantize(blocks, floats)
    const { packed, scales } = quantizeQ4(floats, count, 32)
    for (let block = 0; block < count; block++) {
      const scale = halfAt(blocks, block * 18)
      if (scale === 0) continue
      expect(scales[block]).toBe(scale)
      for (let i = 0; i < 32; i++) {
        const byte = blocks[block * 18 + 2 + (i & 15)]!
        const ours = packed[block * 16 + (i >> 1)]!
        expect((i & 1) === 0 ? ours & 15 : ours >> 4).toBe(i < 16 ? byte & 15 : byte >> 4)
      }
    }
  })
})
