import {
  ATTRIBUTE,
  ATTRIBUTE_CODES,
  DIMENSION,
  ENTRY,
  GRAPH,
  IR_VERSION,
  MODEL,
  NODE,
  OPSET,
  OPSET_VERSION,
  SHAPE,
  TENSOR,
  TENSOR_TYPE,
  TYPE,
  TYPE_CODES,
  VALUE_INFO,
} from './onnx-format.ts'
import type { Attribute, Dim, Graph, GraphNode, Initializer, ValueInfo } from './graph.ts'
import { createProtobufWriter, type ProtobufWriter } from './protobuf-writer.ts'

/**
 * The bytes of an ONNX model. Unpacked repeated fields are used throughout: every parser takes them.
 * @example await InferenceSession.create(writeOnnx(graph), { externalData: [{ path: 'data', data }] })
 */
export function writeOnnx(graph: Graph): Uint8Array<ArrayBuffer> {
  const model = createProtobufWriter()
  model.varint(MODEL.irVersion, IR_VERSION)
  model.string(MODEL.producer, 'crowdinfer')
  model.message(MODEL.graph, (writer) => writeGraph(writer, graph))
  const opsets = { '': graph.opset ?? OPSET_VERSION, 'com.microsoft': 1 }
  for (const [domain, version] of Object.entries(opsets)) {
    model.message(MODEL.opset, (writer) => {
      writer.string(OPSET.domain, domain)
      writer.varint(OPSET.version, version)
    })
  }
  return model.finish()
}

function writeGraph(writer: ProtobufWriter, graph: Graph): void {
  for (const node of graph.nodes) writer.message(GRAPH.node, (inner) => writeNode(inner, node))
  writer.string(GRAPH.name, graph.name)
  for (const initializer of graph.initializers) {
    writer.message(GRAPH.initializer, (inner) => writeTensor(inner, initializer))
  }
  for (const value of graph.inputs) {
    writer.message(GRAPH.input, (inner) => writeValueInfo(inner, value))
  }
  for (const value of graph.outputs) {
    writer.message(GRAPH.output, (inner) => writeValueInfo(inner, value))
  }
}

function writeNode(writer: ProtobufWriter, node: GraphNode): void {
  for (const input of node.inputs) writer.string(NODE.input, input)
  for (const output of node.outputs) writer.string(NODE.output, output)
  writer.string(NODE.name, node.name)
  writer.string(NODE.op, node.op)
  for (const [name, attribute] of Object.entries(node.attributes)) {
    writer.message(NODE.attribute, (inner) => writeAttribute(inner, name, attribute))
  }
  if (node.domain) writer.string(NODE.domain, node.domain)
}

function writeAttribute(writer: ProtobufWriter, name: string, attribute: Attribute): void {
  writer.string(ATTRIBUTE.name, name)
  switch (attribute.kind) {
    case 'int':
      writer.varint(ATTRIBUTE.int, attribute.value)
      break
    case 'float':
      writer.float(ATTRIBUTE.float, attribute.value)
      break
    case 'string':
      writer.string(ATTRIBUTE.string, attribute.value)
      break
    case 'ints':
      for (const value of attribute.value) writer.varint(ATTRIBUTE.ints, value)
      break
    case 'floats':
      for (const value of attribute.value) writer.float(ATTRIBUTE.floats, value)
      break
    case 'strings':
      for (const value of attribute.value) writer.string(ATTRIBUTE.strings, value)
      break
    case 'tensor':
      writer.message(ATTRIBUTE.tensor, (inner) => writeTensor(inner, attribute.value))
      break
  }
  writer.varint(ATTRIBUTE.type, ATTRIBUTE_CODES[attribute.kind])
}

function writeTensor(writer: ProtobufWriter, tensor: Initializer): void {
  for (const dim of tensor.dims) writer.varint(TENSOR.dims, dim)
  writer.varint(TENSOR.type, TYPE_CODES[tensor.type])
  writer.string(TENSOR.name, tensor.name)
  if (tensor.data.kind === 'inline') {
    writer.bytes(TENSOR.raw, tensor.data.bytes)
    return
  }
  const { location, offset, length } = tensor.data
  for (const [key, value] of Object.entries({ location, offset, length })) {
    writer.message(TENSOR.external, (inner) => {
      inner.string(ENTRY.key, key)
      inner.string(ENTRY.value, String(value))
    })
  }
  writer.varint(TENSOR.location, 1)
}

function writeValueInfo(writer: ProtobufWriter, value: ValueInfo): void {
  writer.string(VALUE_INFO.name, value.name)
  writer.message(VALUE_INFO.type, (type) => {
    type.message(TYPE.tensor, (tensor) => {
      tensor.varint(TENSOR_TYPE.element, TYPE_CODES[value.type])
      tensor.message(TENSOR_TYPE.shape, (shape) => {
        for (const dim of value.dims) shape.message(SHAPE.dim, (inner) => writeDim(inner, dim))
      })
    })
  })
}

function writeDim(writer: ProtobufWriter, dim: Dim): void {
  if (typeof dim === 'number') writer.varint(DIMENSION.value, dim)
  else writer.string(DIMENSION.param, dim)
}
