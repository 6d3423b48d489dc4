import { CrowdError } from '../errors.ts'
import type { TensorView } from './tensor-view.ts'

/** PORT of a file: bytes of a range that lies inside it. */
export type ReadBytes = (offset: number, length: number) => Promise<Uint8Array<ArrayBuffer>>

/** Rows that lie apart are read in one go where that costs at most this many times their bytes. */
const SPAN_FACTOR = 4

/** Rows and columns of a view; a vector is one row. */
export function viewShape(view: TensorView): { rows: number; columns: number } {
  const columns = view.dims.at(-1) ?? 0
  return { rows: view.dims.slice(0, -1).reduce((product, size) => product * size, 1), columns }
}

/**
 * Rows [first, first + count) of a view as f32.
 * @throws CrowdError model-invalid where the file is cut short
 */
export async function readRows(
  view: TensorView,
  read: ReadBytes,
  first: number,
  count: number,
): Promise<Float32Array<ArrayBuffer>> {
  const values = await readChanged(view, read, first, count)
  if (view.add !== 0) for (let i = 0; i < values.length; i++) values[i] = values[i]! + view.add
  return values
}

async function readChanged(
  view: TensorView,
  read: ReadBytes,
  first: number,
  count: number,
): Promise<Float32Array<ArrayBuffer>> {
  const { rows, columns } = viewShape(view)
  const { sourceRow } = view
  if (view.transposed) {
    const whole = await readSource(view, read, 0, columns)
    return transposeRows(whole, { rows, columns, first, count })
  }
  if (sourceRow === undefined) return readSource(view, read, view.firstRow + first, count)
  if (rows === 1) {
    const whole = await readSource(view, read, view.firstRow, 1)
    return Float32Array.from({ length: columns }, (_, i) => whole[sourceRow(i)] ?? 0)
  }
  const sources = Array.from({ length: count }, (_, i) => view.firstRow + sourceRow(first + i))
  return gatherRows(view, read, sources)
}

/** Rows of the GGUF tensor, dequantised. */
async function readSource(
  view: TensorView,
  read: ReadBytes,
  first: number,
  count: number,
): Promise<Float32Array<ArrayBuffer>> {
  const { tensor } = view
  const { blockElements, blockBytes, dequantize } = tensor.type
  const columns = tensor.dims.at(-1) ?? 0
  const rowBytes = (columns / blockElements) * blockBytes
  if ((first + count) * rowBytes > tensor.length) {
    throw new CrowdError(
      'model-invalid',
      `The tensor ${tensor.name} has fewer rows than its heads need.`,
    )
  }
  const bytes = await read(tensor.offset + first * rowBytes, count * rowBytes)
  if (bytes.length !== count * rowBytes) {
    throw new CrowdError('model-invalid', `The tensor ${tensor.name} is cut short.`)
  }
  const out = new Float32Array(count * columns)
  dequantize(bytes, out)
  return out
}

async function gatherRows(
  view: TensorView,
  read: ReadBytes,
  sources: readonly number[],
): Promise<Float32Array<ArrayBuffer>> {
  const columns = view.tensor.dims.at(-1) ?? 0
  const out = new Float32Array(sources.length * columns)
  for (let from = 0; from < sources.length;) {
    const { to, low, high } = nextSpan(sources, from)
    const span = await readSource(view, read, low, high - low)
    for (let i = from; i < to; i++) {
      const at = (sources[i]! - low) * columns
      out.set(span.subarray(at, at + columns), i * columns)
    }
    from = to
  }
  return out
}

/** The longest stretch of rows from `from` on that is worth reading in one go. */
function nextSpan(
  sources: readonly number[],
  from: number,
): { to: number; low: number; high: number } {
  let low = sources[from]!
  let high = low + 1
  let best = { to: from + 1, low, high }
  for (let i = from + 1; i < sources.length; i++) {
    low = Math.min(low, sources[i]!)
    high = Math.max(high, sources[i]! + 1)
    const count = i + 1 - from
    if (high - low <= SPAN_FACTOR * count) best = { to: i + 1, low, high }
  }
  return best
}

/** Rows of the transpose of a [columns, rows] matrix. */
function transposeRows(
  whole: Float32Array,
  part: { rows: number; columns: number; first: number; count: number },
): Float32Array<ArrayBuffer> {
  const { rows, columns, first, count } = part
  const out = new Float32Array(count * columns)
  for (let column = 0; column < columns; column++) {
    for (let row = 0; row < count; row++) {
      out[row * columns + column] = whole[column * rows + first + row]!
    }
  }
  return out
}
