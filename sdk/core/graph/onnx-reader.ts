import { CrowdError } from '../errors.ts'
import type { Attribute, Dim, Graph, GraphNode, ValueInfo } from './graph.ts'
import {
  ATTRIBUTE,
  ATTRIBUTE_CODES,
  DIMENSION,
  GRAPH,
  MODEL,
  NODE,
  OPSET,
  OPSET_MAX,
  OPSET_MIN,
  OPSET_VERSION,
  SHAPE,
  TENSOR_TYPE,
  TYPE,
  VALUE_INFO,
} from './onnx-format.ts'
import {
  fieldsOf,
  readTensor,
  safeInt,
  tensorTypeOf,
  text,
  type Fields,
} from './onnx-tensor-reader.ts'
import { packedVarints } from './protobuf-reader.ts'

/**
 * Reads an ONNX model. Weights stay where they are: inline data is a view of `bytes`.
 * @throws CrowdError model-invalid for damage, model-unsupported for what this product can't use (named)
 */
export function readOnnx(bytes: Uint8Array): Graph {
  const model = fieldsOf(bytes)
  const graph = model.message(MODEL.graph)
  if (!graph) throw new CrowdError('model-invalid', 'The file holds no ONNX graph.')
  const opset = readOpset(model)
  return {
    ...readGraph(fieldsOf(graph)),
    ...(opset === OPSET_VERSION ? {} : { opset }),
  }
}

/** The version of ONNX's own operators; our own is understood where a model doesn't say. */
function readOpset(model: Fields): number {
  for (const bytes of model.messages(MODEL.opset)) {
    const fields = fieldsOf(bytes)
    if (normalDomain(fields.string(OPSET.domain)) !== '') continue
    const version = fields.int(OPSET.version)
    if (version >= OPSET_MIN && version <= OPSET_MAX) return version
    throw new CrowdError(
      'model-unsupported',
      `The graph is in version ${version} of ONNX's operators; ${OPSET_MIN} to ${OPSET_MAX} are supported.`,
    )
  }
  return OPSET_VERSION
}

function readGraph(fields: Fields): Graph {
  return {
    name: fields.string(GRAPH.name),
    nodes: fields.messages(GRAPH.node).map((bytes) => readNode(fieldsOf(bytes))),
    initializers: fields.messages(GRAPH.initializer).map(readTensor),
    inputs: fields.messages(GRAPH.input).map(readValueInfo),
    outputs: fields.messages(GRAPH.output).map(readValueInfo),
  }
}

function readNode(fields: Fields): GraphNode {
  const name = fields.string(NODE.name)
  const op = fields.string(NODE.op)
  const attributes: Record<string, Attribute> = {}
  for (const bytes of fields.messages(NODE.attribute)) {
    const inner = fieldsOf(bytes)
    attributes[inner.string(ATTRIBUTE.name)] = readAttribute(inner, `${op} (${name})`)
  }
  return {
    name,
    op,
    domain: normalDomain(fields.string(NODE.domain)),
    inputs: fields.messages(NODE.input).map(text),
    outputs: fields.messages(NODE.output).map(text),
    attributes,
  }
}

/** ONNX's own domain has two spellings. */
function normalDomain(domain: string): string {
  return domain === 'ai.onnx' ? '' : domain
}

function readAttribute(fields: Fields, where: string): Attribute {
  const type = fields.int(ATTRIBUTE.type)
  switch (type) {
    case ATTRIBUTE_CODES.float:
      return { kind: 'float', value: fields.floats(ATTRIBUTE.float)[0] ?? 0 }
    case ATTRIBUTE_CODES.int:
      return { kind: 'int', value: fields.int(ATTRIBUTE.int) }
    case ATTRIBUTE_CODES.string:
      return { kind: 'string', value: fields.string(ATTRIBUTE.string) }
    case ATTRIBUTE_CODES.tensor: {
      const tensor = fields.message(ATTRIBUTE.tensor)
      if (!tensor) throw new CrowdError('model-invalid', `${where} lacks its tensor.`)
      return { kind: 'tensor', value: readTensor(tensor) }
    }
    case ATTRIBUTE_CODES.floats:
      return { kind: 'floats', value: fields.floats(ATTRIBUTE.floats) }
    case ATTRIBUTE_CODES.ints:
      return { kind: 'ints', value: fields.ints(ATTRIBUTE.ints) }
    case ATTRIBUTE_CODES.strings:
      return { kind: 'strings', value: fields.messages(ATTRIBUTE.strings).map(text) }
    default: {
      const name = fields.string(ATTRIBUTE.name)
      throw new CrowdError(
        'model-unsupported',
        `${where}: attribute ${name} has type ${type} (a subgraph or rarer), which can't be cut.`,
      )
    }
  }
}

function readValueInfo(bytes: Uint8Array): ValueInfo {
  const fields = fieldsOf(bytes)
  const name = fields.string(VALUE_INFO.name)
  const type = fieldsOf(fields.message(VALUE_INFO.type) ?? new Uint8Array())
  const tensorBytes = type.message(TYPE.tensor)
  if (!tensorBytes) {
    throw new CrowdError('model-unsupported', `The value ${name} of the graph is not a tensor.`)
  }
  const tensor = fieldsOf(tensorBytes)
  const shape = fieldsOf(tensor.message(TENSOR_TYPE.shape) ?? new Uint8Array())
  return {
    name,
    type: tensorTypeOf(tensor.int(TENSOR_TYPE.element), name),
    dims: shape.messages(SHAPE.dim).map((dim) => readDim(fieldsOf(dim))),
  }
}

function readDim(fields: Fields): Dim {
  const values = fields.all.filter((field) => field.field === DIMENSION.value)
  const value = values.at(-1)
  if (value?.wire === 'varint') return safeInt(value.value, 'a dimension')
  if (value?.wire === 'bytes') return safeInt(packedVarints(value.bytes)[0] ?? 0n, 'a dimension')
  return fields.string(DIMENSION.param) || '?'
}
