import { CrowdError } from '../../errors.ts'
import type { TensorData } from '../../graph/graph.ts'
import { bytesPerElement } from '../../tensor/dtype.ts'
import { bfloatsToFloats, halvesToFloats } from '../../tensor/float16.ts'
import { asBytes, asHalves } from '../../tensor/views.ts'
import type { CopiedWeight } from './layout-copies.ts'

/** Reads a range of a constant's bytes, wherever they lie. */
export type ReadData = (place: TensorData, offset: number, length: number) => Promise<Uint8Array>

/** No more than this is held of a weight. */
const RUN_BYTES = 4 * 1024 * 1024

/** The bytes of a block's data in order, zeros between weights included. */
export async function* copiedData(
  weights: readonly CopiedWeight[],
  read: ReadData,
): AsyncGenerator<Uint8Array> {
  let at = 0
  for (const weight of weights) {
    if (weight.offset > at) yield new Uint8Array(weight.offset - at)
    at = weight.offset
    const runs = weight.form === 'transposed' ? turned(weight, read) : copied(weight, read)
    for await (const bytes of runs) {
      at += bytes.length
      yield bytes
    }
    if (at !== weight.offset + weight.length) {
      throw new CrowdError(
        'internal',
        `The tensor ${weight.name} took ${at - weight.offset} bytes.`,
      )
    }
  }
}

async function* copied(weight: CopiedWeight, read: ReadData): AsyncGenerator<Uint8Array> {
  const { source, form, type } = weight
  const length = source.kind === 'inline' ? source.bytes.length : source.length
  for (let at = 0; at < length; at += RUN_BYTES) {
    const bytes = await read(source, at, Math.min(RUN_BYTES, length - at))
    if (form === 'copied') yield bytes
    else if (form === 'shifted') yield bytes.map((byte) => byte ^ 128)
    else {
      const halves = asHalves(bytes)
      yield asBytes(type === 'f16' ? halvesToFloats(halves) : bfloatsToFloats(halves))
    }
  }
}

/** A band of rows at a time: the file has them as columns. */
async function* turned(weight: CopiedWeight, read: ReadData): AsyncGenerator<Uint8Array> {
  const [rows = 0, columns = 0] = weight.dims
  const size = bytesPerElement(weight.type)
  const band = Math.max(1, Math.floor(RUN_BYTES / (columns * size)))
  for (let row = 0; row < rows; row += band) {
    const count = Math.min(band, rows - row)
    const out = new Uint8Array(count * columns * size)
    for (let column = 0; column < columns; column++) {
      const run = await read(weight.source, (column * rows + row) * size, count * size)
      for (let i = 0; i < count; i++) {
        const to = (i * columns + column) * size
        for (let byte = 0; byte < size; byte++) out[to + byte] = run[i * size + byte]!
      }
    }
    yield out
  }
}
