import type { TensorType } from '../tensor/dtype.ts'

/** What ONNX Runtime 1.30 loads everywhere: IR 10, opset 21, and its own operators. */
export const IR_VERSION = 10
export const OPSET_VERSION = 21
/** Other versions of ONNX's own operators that ONNX Runtime 1.30 takes. */
export const OPSET_MIN = 11
export const OPSET_MAX = 26

/** Field numbers of onnx.proto, by message. */
export const MODEL = { irVersion: 1, producer: 2, graph: 7, opset: 8 } as const
export const OPSET = { domain: 1, version: 2 } as const
export const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 } as const
export const NODE = { input: 1, output: 2, name: 3, op: 4, attribute: 5, domain: 7 } as const
export const ATTRIBUTE = {
  name: 1,
  float: 2,
  int: 3,
  string: 4,
  tensor: 5,
  graph: 6,
  floats: 7,
  ints: 8,
  strings: 9,
  graphs: 11,
  type: 20,
} as const
export const TENSOR = {
  dims: 1,
  type: 2,
  floatData: 4,
  int32Data: 5,
  int64Data: 7,
  name: 8,
  raw: 9,
  external: 13,
  location: 14,
} as const
export const ENTRY = { key: 1, value: 2 } as const
export const VALUE_INFO = { name: 1, type: 2 } as const
export const TYPE = { tensor: 1 } as const
export const TENSOR_TYPE = { element: 1, shape: 2 } as const
export const SHAPE = { dim: 1 } as const
export const DIMENSION = { value: 1, param: 2 } as const

/** TensorProto.DataType */
export const TYPE_CODES: Readonly<Record<TensorType, number>> = {
  f32: 1,
  u8: 2,
  i8: 3,
  u16: 4,
  i16: 5,
  i32: 6,
  i64: 7,
  bool: 9,
  f16: 10,
  f64: 11,
  bf16: 16,
}

/** AttributeProto.AttributeType */
export const ATTRIBUTE_CODES = {
  float: 1,
  int: 2,
  string: 3,
  tensor: 4,
  floats: 6,
  ints: 7,
  strings: 8,
} as const
