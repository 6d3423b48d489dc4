import { expect, it } from 'vitest'
import { dequantizeQ8, quantizeQ8 } from './quantize-q8.ts'

it.each([
  ['8 bits, -127 to 127', 127, 127, 0.0123291015625],
  ['4 bits, -8 to 7', 8, 7, -0.3701171875],
])('keeps what %s hold exactly', (_name, low, high, scale) => {
  const row = Float32Array.from(
    { length: 32 },
    (_, i) => scale * (i === 3 ? -low : ((i * 37) % (low + high)) - low),
  )
  const { packed, scales } = quantizeQ8(row, 1, 32)
  expect(dequantizeQ8(packed, scales, 1, 32)).toEqual(row)
})

it('errs by at most half a step, pads the last block and keeps zeros', () => {
  const columns = 40
  const values = Float32Array.from({ length: 3 * columns }, (_, i) =>
    i < columns ? 0 : Math.sin(i * 12.9898) * 3,
  )
  const { packed, scales } = quantizeQ8(values, 3, columns)
  expect(packed.length).toBe(3 * 2 * 32)
  expect([...packed.subarray(2 * 64 + 40)]).toEqual(new Array<number>(24).fill(128))
  const back = dequantizeQ8(packed, scales, 3, columns)
  values.forEach((value, i) => {
    const row = Math.floor(i / columns)
    const step = Math.abs(scales[row * 2 + ((i % columns) >> 5)]!)
    // +127 at most: where -128 is the end that is used, its opposite errs by a whole step.
    const opposite = Math.abs(value) > 127 * step
    expect(Math.abs(value - back[i]!)).toBeLessThanOrEqual((opposite ? 1 : 0.5001) * step)
  })
})
