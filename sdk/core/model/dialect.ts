import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode } from '../graph/graph.ts'

/** Operators that the partitioner knows how to cut and every provider runs (or is lowered to). */
const ALLOWED: ReadonlySet<string> = new Set([
  'Add',
  'Cast',
  'Concat',
  'Cos',
  'Div',
  'Expand',
  'Gather',
  'Gelu',
  'LayerNormalization',
  'MatMul',
  'Mul',
  'NonZero',
  'OneHot',
  'Range',
  'ReduceSum',
  'Relu',
  'Reshape',
  'ScatterND',
  'Shape',
  'Sigmoid',
  'SimplifiedLayerNormalization',
  'Sin',
  'Softmax',
  'Sub',
  'Tanh',
  'TopK',
  'Unsqueeze',
  'com.microsoft.FusedMatMul',
  'com.microsoft.GatherBlockQuantized',
  'com.microsoft.GroupQueryAttention',
  'com.microsoft.MatMulNBits',
  'com.microsoft.RotaryEmbedding',
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
