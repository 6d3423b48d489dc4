import { CrowdError } from '../errors.ts'
import { int, type GraphNode } from '../graph/graph.ts'
import { describeNode } from './dialect.ts'

/** The value that holds residual + skip of a fused norm; exporters leave it unnamed where nothing reads it. */
export function sumOf(node: GraphNode): string {
  return node.outputs[3] || `${node.name || node.outputs[0] || ''}/sum`
}

export function isSkipNorm(node: GraphNode): boolean {
  return node.op === 'SkipSimplifiedLayerNormalization'
}

/**
 * Splits the fused residual+norm nodes that `wanted` selects into an Add, which can end a block, and a plain
 * norm, which begins the next. The sum keeps its name.
 */
export function unfuseNorms(
  nodes: readonly GraphNode[],
  wanted: (node: GraphNode) => boolean,
): GraphNode[] {
  return nodes.flatMap((node) => (isSkipNorm(node) && wanted(node) ? split(node) : [node]))
}

function split(node: GraphNode): GraphNode[] {
  const [residual = '', skip = '', weight = '', bias = ''] = node.inputs
  if (bias !== '') {
    throw new CrowdError('model-unsupported', `${describeNode(node)} with a bias can't be cut.`)
  }
  const sum = sumOf(node)
  const epsilon = node.attributes['epsilon']
  return [
    {
      name: `${node.name}/Add`,
      op: 'Add',
      domain: '',
      inputs: [residual, skip],
      outputs: [sum],
      attributes: {},
    },
    {
      name: `${node.name}/LayerNorm`,
      op: 'SimplifiedLayerNormalization',
      domain: '',
      inputs: [sum, weight],
      outputs: [node.outputs[0] ?? ''],
      attributes: { axis: int(-1), stash_type: int(1), ...(epsilon ? { epsilon } : {}) },
    },
  ]
}
