/** Writes the protobuf wire format. Field order is call order; nothing is written for what isn't called. */
export type ProtobufWriter = {
  /** A signed 64-bit integer that is safe in a double. */
  readonly varint: (field: number, value: number) => void
  readonly float: (field: number, value: number) => void
  readonly string: (field: number, value: string) => void
  readonly bytes: (field: number, value: Uint8Array) => void
  /** Fields that are encoded already. */
  readonly raw: (fields: Uint8Array) => void
  readonly message: (field: number, fill: (writer: ProtobufWriter) => void) => void
  readonly finish: () => Uint8Array<ArrayBuffer>
}

export function createProtobufWriter(): ProtobufWriter {
  const encoder = new TextEncoder()
  let buffer = new Uint8Array(256)
  let length = 0

  const reserve = (count: number): void => {
    if (length + count <= buffer.length) return
    const grown = new Uint8Array(Math.max(buffer.length * 2, length + count))
    grown.set(buffer.subarray(0, length))
    buffer = grown
  }
  const raw = (bytes: Uint8Array): void => {
    reserve(bytes.length)
    buffer.set(bytes, length)
    length += bytes.length
  }
  const rawVarint = (value: number): void => {
    reserve(10)
    let rest = BigInt.asUintN(64, BigInt(value))
    while (rest > 127n) {
      buffer[length++] = Number(rest & 127n) | 128
      rest >>= 7n
    }
    buffer[length++] = Number(rest)
  }
  const tag = (field: number, wire: number): void => rawVarint(field * 8 + wire)
  const bytes = (field: number, value: Uint8Array): void => {
    tag(field, 2)
    rawVarint(value.length)
    raw(value)
  }
  const message = (field: number, fill: (writer: ProtobufWriter) => void): void => {
    const inner = createProtobufWriter()
    fill(inner)
    bytes(field, inner.finish())
  }

  return {
    varint: (field, value) => {
      tag(field, 0)
      rawVarint(value)
    },
    float: (field, value) => {
      tag(field, 5)
      reserve(4)
      new DataView(buffer.buffer).setFloat32(length, value, true)
      length += 4
    },
    string: (field, value) => bytes(field, encoder.encode(value)),
    bytes,
    raw,
    message,
    finish: () => buffer.slice(0, length),
  }
}
