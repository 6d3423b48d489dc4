import type { Graph, GraphNode } from '../../graph/graph.ts'
import { TYPE_CODES } from '../../graph/onnx-format.ts'
import { tensorTypeOf } from '../../graph/onnx-tensor-reader.ts'
import type { TensorType } from '../../tensor/dtype.ts'
import { intOf } from './constant-value.ts'

const GIVES_BOOL: ReadonlySet<string> = new Set([
  'And',
  'Equal',
  'Greater',
  'GreaterOrEqual',
  'IsInf',
  'IsNaN',
  'Less',
  'LessOrEqual',
  'Not',
  'Or',
  'Xor',
])

/** Element types of all values, as far as what this product cuts needs them. */
export function valueTypes(graph: Graph): Map<string, TensorType> {
  const types = new Map<string, TensorType>()
  for (const { name, type } of graph.inputs) types.set(name, type)
  for (const { name, type } of graph.initializers) types.set(name, type)
  for (const node of graph.nodes) {
    node.outputs.forEach((output, i) => {
      const type = outputType(node, i, types)
      if (output && type) types.set(output, type)
    })
  }
  return types
}

function outputType(
  node: GraphNode,
  index: number,
  types: ReadonlyMap<string, TensorType>,
): TensorType | undefined {
  const input = (at: number): TensorType | undefined => types.get(node.inputs[at] ?? '')
  if (GIVES_BOOL.has(node.op)) return 'bool'
  switch (node.op) {
    case 'Cast':
      return tensorTypeOf(intOf(node.attributes['to'], TYPE_CODES.f32), node.name)
    case 'Shape':
    case 'Size':
    case 'ArgMax':
    case 'NonZero':
      return 'i64'
    case 'ConstantOfShape': {
      const value = node.attributes['value']
      return value?.kind === 'tensor' ? value.value.type : 'f32'
    }
    case 'Where':
      return input(1)
    case 'DequantizeLinear':
    case 'GatherBlockQuantized':
      return input(node.op === 'DequantizeLinear' ? 1 : 2)
    case 'DynamicQuantizeLinear':
      return index === 1 ? 'f32' : 'u8'
    case 'MatMulInteger':
      return 'i32'
    case 'TopK':
      return index === 1 ? 'i64' : input(0)
    default:
      return input(0)
  }
}
