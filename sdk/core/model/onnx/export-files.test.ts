import { describe, expect, it } from 'vitest'
import { asWeightDtype, checkNamedExport, chooseExport, type AskedDtype } from './export-files.ts'

const ALL = [
  'config.json',
  'onnx/model.onnx',
  'onnx/model.onnx_data',
  'onnx/model_bnb4.onnx',
  'onnx/model_fp16.onnx',
  'onnx/model_int8.onnx',
  'onnx/model_q4.onnx',
  'onnx/model_q4f16.onnx',
  'onnx/model_quantized.onnx',
  'onnx/model_uint8.onnx',
]

function pathOf(paths: readonly string[], dtype?: AskedDtype): string | undefined {
  return chooseExport(paths, dtype, 'it')?.path
}

describe('choosing the file of an ONNX export', () => {
  it.each<[AskedDtype, string]>([
    ['fp32', 'onnx/model.onnx'],
    ['f32', 'onnx/model.onnx'],
    ['fp16', 'onnx/model_fp16.onnx'],
    ['f16', 'onnx/model_fp16.onnx'],
    ['q4', 'onnx/model_q4.onnx'],
    ['q4f16', 'onnx/model_q4f16.onnx'],
    ['q8', 'onnx/model_quantized.onnx'],
    ['int8', 'onnx/model_int8.onnx'],
    ['uint8', 'onnx/model_uint8.onnx'],
    ['bnb4', 'onnx/model_bnb4.onnx'],
  ])('%s is %s', (dtype, path) => {
    expect(pathOf(ALL, dtype)).toBe(path)
  })

  it('takes what loses least where nothing was asked for, and says what else there is', () => {
    expect(chooseExport(ALL, undefined, 'it')).toEqual({
      path: 'onnx/model_fp16.onnx',
      dtype: 'fp16',
      others: ['fp32', 'q4', 'q4f16', 'q8', 'int8', 'uint8', 'bnb4'],
    })
    expect(pathOf(['onnx/model_q4f16.onnx', 'onnx/model_q4.onnx'])).toBe('onnx/model_q4.onnx')
    expect(pathOf(['onnx/model_int8.onnx', 'onnx/model_quantized.onnx'])).toBe(
      'onnx/model_quantized.onnx',
    )
  })

  it('looks in the folder onnx before the top, and knows older names', () => {
    expect(pathOf(['model.onnx', 'onnx/model_q4.onnx'])).toBe('onnx/model_q4.onnx')
    expect(pathOf(['model_fp32.onnx', 'other/model.onnx'])).toBe('model_fp32.onnx')
    expect(pathOf(['onnx/decoder_model_merged_q4.onnx'], 'q4')).toBe(
      'onnx/decoder_model_merged_q4.onnx',
    )
    expect(pathOf(['config.json', 'onnx/model.onnx_data', 'other/model.onnx'])).toBeUndefined()
  })

  it('takes a file of any name where it is the only one', () => {
    const found = { path: 'decoder.onnx', dtype: null, others: [] }
    expect(chooseExport(['decoder.onnx'], undefined, 'it')).toEqual(found)
    expect(() => chooseExport(['decoder.onnx'], 'q4', 'it')).toThrow(
      'it has no q4. It has: decoder',
    )
  })

  it('never takes another one than was asked for, and lists what there is', () => {
    const some = ['onnx/model.onnx', 'onnx/model_q4f16.onnx', 'onnx/encoder.onnx']
    const text =
      'it has no q4. It has: onnx/encoder.onnx, fp32 (onnx/model.onnx), q4f16 (onnx/model_q4f16.onnx).'
    expect(() => chooseExport(some, 'q4', 'it')).toThrow(text)
    expect(() => chooseExport(some, 'q4', 'it')).toThrow(
      expect.objectContaining({ code: 'bad-option' }),
    )
    expect(() => chooseExport(['a.onnx', 'b.onnx'], undefined, 'it')).toThrow(
      'it has no ONNX file of a known name. It has: a.onnx, b.onnx.',
    )
  })

  it('takes a named file only as what it is', () => {
    expect(() => checkNamedExport('onnx/model_q4.onnx', undefined)).not.toThrow()
    expect(() => checkNamedExport('onnx/model.onnx', 'f32')).not.toThrow()
    expect(() => checkNamedExport('onnx/model_q4.onnx', 'q8')).toThrow("is q4: it can't be read")
    expect(() => checkNamedExport('mine.onnx', 'q8')).toThrow('is taken as it is')
  })

  it('has no words of exports for other weights', () => {
    expect(asWeightDtype('q4', 'it')).toBe('q4')
    expect(() => asWeightDtype('q4f16', 'it')).toThrow(
      'it holds no ONNX export, so there is no q4f16; its weights can be kept as q4, q8, f16, f32.',
    )
  })
})
