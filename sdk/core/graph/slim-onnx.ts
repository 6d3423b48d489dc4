import { CrowdError } from '../errors.ts'
import { ATTRIBUTE, ENTRY, GRAPH, MODEL, NODE, TENSOR } from './onnx-format.ts'
import { createProtobufWriter, type ProtobufWriter } from './protobuf-writer.ts'

/** PORT. Bytes of one file, range by range. A range that the file doesn't hold is an error of the reader. */
export type RangeReader = {
  readonly bytes: number
  readonly read: (offset: number, length: number) => Promise<Uint8Array>
}

/** Data longer than this stays in the file. */
const INLINE_MAX_BYTES = 4096
/** A graph of 100,000 nodes takes some 20 MB without its weights. */
const SLIM_MAX_BYTES = 64 * 1024 * 1024
const WINDOW_BYTES = 256 * 1024
/** Tag and length of a field, ten bytes each at most. */
const HEADER_BYTES = 20

/** What lies in a field: a message to look into, by its own fields; data that may stay; or what is dropped. */
type Content = { readonly [field: number]: Content } | 'data' | 'dropped'

const TENSOR_CONTENT: Content = { [TENSOR.raw]: 'data' }
/** A subgraph is refused by the name of its node whatever it holds. */
const ATTRIBUTE_CONTENT: Content = {
  [ATTRIBUTE.tensor]: TENSOR_CONTENT,
  [ATTRIBUTE.graph]: 'dropped',
  [ATTRIBUTE.graphs]: 'dropped',
}
const MODEL_CONTENT: Content = {
  [MODEL.graph]: {
    [GRAPH.node]: { [NODE.attribute]: ATTRIBUTE_CONTENT },
    [GRAPH.initializer]: TENSOR_CONTENT,
  },
}

/**
 * An ONNX file without the weights that lie inside it: long data becomes external data at location '',
 * which stands for the file itself. What is read and held is bounded, however large the file.
 * @throws CrowdError model-invalid, model-unsupported where more than weights is large
 */
export async function slimOnnx(file: RangeReader): Promise<Uint8Array<ArrayBuffer>> {
  const read = createWindow(file)
  let kept = 0

  async function copied(offset: number, length: number): Promise<Uint8Array> {
    kept += length
    if (kept <= SLIM_MAX_BYTES) return read(offset, length)
    throw new CrowdError(
      'model-unsupported',
      `The graph has more than ${SLIM_MAX_BYTES} bytes beside its weights.`,
    )
  }

  /** The message in [from, to), whose fields hold `content`. */
  async function slim(
    [from, to]: readonly [number, number],
    content: { readonly [field: number]: Content },
  ): Promise<Uint8Array<ArrayBuffer>> {
    const writer = createProtobufWriter()
    let at = from
    while (at < to) {
      const header = readHeader(await read(at, Math.min(HEADER_BYTES, to - at)))
      const start = at + header.bytes
      const end = start + header.length
      if (end > to) throw damaged('ends in the middle of a field')
      const inner = header.wire === 2 ? content[header.field] : undefined
      if (inner === 'dropped') writer.bytes(header.field, new Uint8Array())
      else if (inner === undefined || header.length <= INLINE_MAX_BYTES) {
        writer.raw(await copied(at, end - at))
      } else if (inner === 'data') writeExternal(writer, start, header.length)
      else writer.bytes(header.field, await slim([start, end], inner))
      at = end
    }
    return writer.finish()
  }
  return slim([0, file.bytes], MODEL_CONTENT)
}

function writeExternal(writer: ProtobufWriter, offset: number, length: number): void {
  for (const [key, value] of Object.entries({ offset, length })) {
    writer.message(TENSOR.external, (entry) => {
      entry.string(ENTRY.key, key)
      entry.string(ENTRY.value, String(value))
    })
  }
  writer.varint(TENSOR.location, 1)
}

type Header = {
  readonly field: number
  readonly wire: number
  /** Of tag and, where there is one, length. */
  readonly bytes: number
  /** Of what follows them. */
  readonly length: number
}

function readHeader(bytes: Uint8Array): Header {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      const byte = bytes[at++]
      if (byte === undefined) throw damaged('ends in the middle of a field')
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
    throw damaged('holds a number longer than 64 bits')
  }
  const key = varint()
  const wire = key % 8
  const field = Math.floor(key / 8)
  const tagBytes = at
  if (wire === 0) {
    varint()
    return { field, wire, bytes: tagBytes, length: at - tagBytes }
  }
  if (wire === 1) return { field, wire, bytes: tagBytes, length: 8 }
  if (wire === 5) return { field, wire, bytes: tagBytes, length: 4 }
  if (wire !== 2) throw damaged(`is not protobuf: wire type ${wire}`)
  const length = varint()
  return { field, wire, bytes: at, length }
}

/** Reads ahead, since fields are small and many. */
function createWindow(file: RangeReader): RangeReader['read'] {
  let from = 0
  let held = new Uint8Array()
  return async (offset, length) => {
    if (length > WINDOW_BYTES) return file.read(offset, length)
    if (offset < from || offset + length > from + held.length) {
      held = new Uint8Array(await file.read(offset, Math.min(WINDOW_BYTES, file.bytes - offset)))
      from = offset
    }
    return held.subarray(offset - from, offset - from + length)
  }
}

function damaged(how: string): CrowdError {
  return new CrowdError('model-invalid', `The graph ${how}.`)
}
