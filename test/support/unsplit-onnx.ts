import * as ort from 'onnxruntime-node'
import type { Tensor } from 'onnxruntime-common'
import { halvesToFloats } from '../../sdk/core/tensor/float16.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { Decoder } from './chained-blocks.ts'

/** An exported file as its exporter meant it to be run: one session, `present` fed back as past. */
export async function openUnsplitOnnx(file: string, manifest: Manifest): Promise<Decoder> {
  const session = await ort.InferenceSession.create(file, {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    logSeverityLevel: 3,
  })
  const types = new Map(
    session.inputMetadata.flatMap((input) => (input.isTensor ? [[input.name, input.type]] : [])),
  )
  const { kvHeadCount, headSize } = manifest
  const pastNames = session.inputNames.filter((name) => name.startsWith('past_key_values'))
  const empty = (name: string): Tensor => {
    const isHalf = types.get(name) === 'float16'
    const data = isHalf ? new Uint16Array(0) : new Float32Array(0)
    const type = isHalf ? 'float16' : 'float32'
    return new ort.Tensor(type, data, [1, kvHeadCount, 0, headSize])
  }
  let past: Record<string, Tensor> = {}
  let length = 0
  return {
    step: async (position, ids) => {
      if (position === 0) past = Object.fromEntries(pastNames.map((name) => [name, empty(name)]))
      else if (position !== length)
        throw new Error('the unsplit model can only go on or start anew')
      length = position + ids.length
      const longs = (values: readonly number[]): Tensor =>
        new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length])
      const feeds: Record<string, Tensor> = {
        ...past,
        input_ids: longs(ids),
        attention_mask: longs(new Array<number>(length).fill(1)),
        position_ids: longs(ids.map((_, i) => position + i)),
      }
      const outputs = await session.run(
        Object.fromEntries(
          Object.entries(feeds).filter(([name]) => session.inputNames.includes(name)),
        ),
      )
      past = Object.fromEntries(
        Object.entries(outputs)
          .filter(([name]) => name.startsWith('present'))
          .map(([name, tensor]) => [name.replace('present', 'past_key_values'), tensor]),
      )
      return floats(outputs['logits'])
    },
    close: () => session.release(),
  }
}

function floats(tensor: Tensor | undefined): Float32Array<ArrayBuffer> {
  if (tensor?.data instanceof Float32Array) return Float32Array.from(tensor.data)
  if (tensor?.data instanceof Uint16Array) return halvesToFloats(tensor.data)
  throw new Error(`no logits: ${tensor?.type ?? 'none'}`)
}
