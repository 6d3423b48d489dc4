import { CrowdError } from '../errors.ts'
import { tensorBytes, type TensorType } from '../tensor/dtype.ts'
import type { Initializer, TensorData } from './graph.ts'
import { ENTRY, TENSOR, TYPE_CODES } from './onnx-format.ts'
import { packedVarints, protobufFields, type ProtobufField } from './protobuf-reader.ts'

/** The fields of one message by number. The last one wins where a field isn't repeated, as protobuf has it. */
export type Fields = {
  readonly all: readonly ProtobufField[]
  readonly messages: (field: number) => Uint8Array[]
  readonly message: (field: number) => Uint8Array | undefined
  readonly string: (field: number) => string
  readonly ints: (field: number) => number[]
  readonly int: (field: number) => number
  readonly floats: (field: number) => number[]
}

export function fieldsOf(bytes: Uint8Array): Fields {
  const all = [...protobufFields(bytes)]
  const messages = (field: number): Uint8Array[] =>
    all.flatMap((entry) => (entry.field === field && entry.wire === 'bytes' ? [entry.bytes] : []))
  const ints = (field: number): number[] =>
    all.flatMap((entry) => {
      if (entry.field !== field) return []
      if (entry.wire === 'varint') return [safeInt(entry.value, 'a number')]
      if (entry.wire !== 'bytes') return []
      return packedVarints(entry.bytes).map((value) => safeInt(value, 'a number'))
    })
  const floats = (field: number): number[] =>
    all.flatMap((entry) => {
      if (entry.field !== field || entry.wire === 'varint' || entry.wire === 'fixed64') return []
      return floatsOf(entry.bytes)
    })
  return {
    all,
    messages,
    message: (field) => messages(field).at(-1),
    string: (field) => text(messages(field).at(-1) ?? new Uint8Array()),
    ints,
    int: (field) => ints(field).at(-1) ?? 0,
    floats,
  }
}

export function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}

/** A protobuf int64 as a number. */
export function safeInt(value: bigint, what: string): number {
  const signed = Number(BigInt.asIntN(64, value))
  if (Number.isSafeInteger(signed)) return signed
  // INT64_MAX and INT64_MIN stand for "to the end" in Slice: any huge number means the same.
  if (Math.abs(signed) > 2 ** 62)
    return signed > 0 ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER
  throw new CrowdError('model-invalid', `The graph holds ${what} out of range: ${signed}.`)
}

export function tensorTypeOf(code: number, name: string): TensorType {
  for (const [type, number] of Object.entries(TYPE_CODES)) {
    // Cast: Object.entries loses the key type of this closed record.
    if (number === code) return type as TensorType
  }
  throw new CrowdError('model-unsupported', `The tensor ${name} has element type ${code}.`)
}

/** @throws CrowdError model-invalid where the data doesn't fit the shape */
export function readTensor(bytes: Uint8Array): Initializer {
  const fields = fieldsOf(bytes)
  const name = fields.string(TENSOR.name)
  const type = tensorTypeOf(fields.int(TENSOR.type), name)
  const dims = fields.ints(TENSOR.dims)
  if (dims.some((dim) => dim < 0)) {
    throw new CrowdError('model-invalid', `The tensor ${name} has a negative dimension.`)
  }
  const expected = tensorBytes(type, dims)
  const data = readData(fields, type, expected)
  const length = data.kind === 'inline' ? data.bytes.length : data.length
  if (length !== expected) {
    throw new CrowdError(
      'model-invalid',
      `The tensor ${name} has ${length} bytes, not ${expected}.`,
    )
  }
  return { name, type, dims, data }
}

function readData(fields: Fields, type: TensorType, expected: number): TensorData {
  if (fields.int(TENSOR.location) === 1) return readExternal(fields, expected)
  const raw = fields.message(TENSOR.raw)
  if (raw) return { kind: 'inline', bytes: raw }
  if (type === 'f32') return inline(new Float32Array(fields.floats(TENSOR.floatData)))
  if (type === 'i64') {
    return inline(new BigInt64Array(fields.ints(TENSOR.int64Data).map((value) => BigInt(value))))
  }
  const values = fields.ints(TENSOR.int32Data)
  if (type === 'i32') return inline(new Int32Array(values))
  if (type === 'f16' || type === 'bf16' || type === 'u16' || type === 'i16') {
    return inline(new Uint16Array(values))
  }
  return inline(new Uint8Array(values))
}

function readExternal(fields: Fields, expected: number): TensorData {
  const entries = new Map<string, string>()
  for (const bytes of fields.messages(TENSOR.external)) {
    const entry = fieldsOf(bytes)
    entries.set(entry.string(ENTRY.key), entry.string(ENTRY.value))
  }
  const location = entries.get('location') ?? ''
  const offset = Number(entries.get('offset') ?? 0)
  const length = Number(entries.get('length') ?? expected)
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0) {
    throw new CrowdError('model-invalid', `External data at ${location} has no valid range.`)
  }
  return { kind: 'external', location, offset, length }
}

function inline(view: ArrayBufferView<ArrayBuffer>): TensorData {
  return {
    kind: 'inline',
    bytes: new Uint8Array(view.buffer, view.byteOffset, view.byteLength),
  }
}

function floatsOf(bytes: Uint8Array): number[] {
  if (bytes.length % 4 !== 0) {
    throw new CrowdError('model-invalid', 'The graph holds a list of floats that is cut short.')
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true))
}
