import { CrowdError } from '../errors.ts'

/** One field of a message. `bytes` is a view, not a copy. */
export type ProtobufField =
  | { readonly wire: 'varint'; readonly field: number; readonly value: bigint }
  | { readonly wire: 'bytes'; readonly field: number; readonly bytes: Uint8Array }
  | { readonly wire: 'fixed32'; readonly field: number; readonly bytes: Uint8Array }
  | { readonly wire: 'fixed64'; readonly field: number; readonly bytes: Uint8Array }

/**
 * The fields of a message in order. Every length is checked against what is there.
 * @throws CrowdError model-invalid
 */
export function* protobufFields(message: Uint8Array): Generator<ProtobufField> {
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[at++]
      if (byte === undefined) throw truncated()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asUintN(64, value)
    }
    throw new CrowdError('model-invalid', 'The graph holds a number longer than 64 bits.')
  }
  const take = (count: bigint): Uint8Array => {
    if (count > BigInt(message.length - at)) throw truncated()
    const from = at
    at += Number(count)
    return message.subarray(from, at)
  }
  while (at < message.length) {
    const key = varint()
    const field = Number(key >> 3n)
    const wire = Number(key & 7n)
    if (wire === 0) yield { wire: 'varint', field, value: varint() }
    else if (wire === 1) yield { wire: 'fixed64', field, bytes: take(8n) }
    else if (wire === 2) yield { wire: 'bytes', field, bytes: take(varint()) }
    else if (wire === 5) yield { wire: 'fixed32', field, bytes: take(4n) }
    else throw new CrowdError('model-invalid', `The graph is not protobuf: wire type ${wire}.`)
  }
}

/** The varints of a packed field. */
export function packedVarints(bytes: Uint8Array): bigint[] {
  const values: bigint[] = []
  let value = 0n
  let shift = 0n
  for (const byte of bytes) {
    value |= BigInt(byte & 127) << shift
    shift += 7n
    if (byte < 128) {
      values.push(BigInt.asUintN(64, value))
      value = 0n
      shift = 0n
    } else if (shift >= 70n) {
      throw new CrowdError('model-invalid', 'The graph holds a number longer than 64 bits.')
    }
  }
  if (shift !== 0n) throw truncated()
  return values
}

function truncated(): CrowdError {
  return new CrowdError('model-invalid', 'The graph ends in the middle of a field.')
}
