import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode } from '../graph/graph.ts'

/** Operators without state, randomness or subgraphs, which the partitioner can therefore cut. */
const ALLOWED: ReadonlySet<string> = new Set([
  'Abs',
  'Add',
  'And',
  'ArgMax',
  'Cast',
  'Clip',
  'Concat',
  'ConstantOfShape',
  'Cos',
  'CumSum',
  'DequantizeLinear',
  'Div',
  'DynamicQuantizeLinear',
  'Einsum',
  'Equal',
  'Erf',
  'Exp',
  'Expand',
  'Flatten',
  'Gather',
  'GatherElements',
  'GatherND',
  'Gelu',
  'Gemm',
  'Greater',
  'GreaterOrEqual',
  'IsNaN',
  'LayerNormalization',
  'Less',
  'LessOrEqual',
  'Log',
  'MatMul',
  'MatMulInteger',
  'Max',
  'Min',
  'Mod',
  'Mul',
  'Neg',
  'NonZero',
  'Not',
  'OneHot',
  'Or',
  'Pow',
  'RMSNormalization',
  'Range',
  'Reciprocal',
  'ReduceMax',
  'ReduceMean',
  'ReduceSum',
  'Relu',
  'Reshape',
  'Round',
  'RotaryEmbedding',
  'ScatterElements',
  'ScatterND',
  'Shape',
  'Sigmoid',
  'SimplifiedLayerNormalization',
  'Sin',
  'Size',
  'Slice',
  'Softmax',
  'Softplus',
  'Split',
  'Sqrt',
  'Squeeze',
  'Sub',
  'Tanh',
  'Tile',
  'TopK',
  'Transpose',
  'Trilu',
  'Unsqueeze',
  'Where',
  'com.microsoft.BiasGelu',
  'com.microsoft.DynamicQuantizeMatMul',
  'com.microsoft.FastGelu',
  'com.microsoft.FusedMatMul',
  'com.microsoft.GatherBlockQuantized',
  'com.microsoft.Gelu',
  'com.microsoft.GroupQueryAttention',
  'com.microsoft.MatMulBnb4',
  'com.microsoft.MatMulIntegerToFloat',
  'com.microsoft.MatMulNBits',
  'com.microsoft.MoE',
  'com.microsoft.MultiHeadAttention',
  'com.microsoft.QMoE',
  'com.microsoft.QuickGelu',
  'com.microsoft.RotaryEmbedding',
  'com.microsoft.SkipLayerNormalization',
  'com.microsoft.SkipSimplifiedLayerNormalization',
])

export function describeNode(node: GraphNode): string {
  return `${node.op} (${node.name || node.outputs[0] || 'unnamed'})`
}

/**
 * Refuses a graph with an operator outside the dialect, or whose nodes are out of order.
 * @throws CrowdError model-unsupported (operator and node named), model-invalid
 */
export function checkDialect(graph: Graph): void {
  const known = new Set(graph.inputs.map((input) => input.name))
  for (const initializer of graph.initializers) known.add(initializer.name)
  for (const node of graph.nodes) {
    const operator = node.domain === '' ? node.op : `${node.domain}.${node.op}`
    if (!ALLOWED.has(operator)) {
      throw new CrowdError('model-unsupported', `The operator ${describeNode(node)} can't be cut.`)
    }
    for (const input of node.inputs) {
      if (input !== '' && !known.has(input)) {
        throw new CrowdError(
          'model-invalid',
          `${describeNode(node)} reads ${input}, which no earlier node makes.`,
        )
      }
    }
    for (const output of node.outputs) known.add(output)
  }
  for (const output of graph.outputs) {
    if (!known.has(output.name)) {
      throw new CrowdError('model-invalid', `No node makes the graph's output ${output.name}.`)
    }
  }
}
