/** Element types of tensors in graphs and weight files. `u4` never appears: 4-bit weights are packed in `u8`. */
export type TensorType =
  'f32' | 'f16' | 'bf16' | 'f64' | 'u8' | 'i8' | 'u16' | 'i16' | 'i32' | 'i64' | 'bool'

const BYTES: Record<TensorType, number> = {
  f32: 4,
  f16: 2,
  bf16: 2,
  f64: 8,
  u8: 1,
  i8: 1,
  u16: 2,
  i16: 2,
  i32: 4,
  i64: 8,
  bool: 1,
}

/** Bytes of one element. */
export function bytesPerElement(type: TensorType): number {
  return BYTES[type]
}

export function elementCount(dims: readonly number[]): number {
  return dims.reduce((product, dim) => product * dim, 1)
}

/** Bytes of a dense tensor. */
export function tensorBytes(type: TensorType, dims: readonly number[]): number {
  return elementCount(dims) * BYTES[type]
}

/** `[32, 64]`: how shapes read in messages. */
export function describeShape(dims: readonly (number | string)[]): string {
  return `[${dims.join(', ')}]`
}
