import { int, type GraphNode } from '../graph/graph.ts'

/** The value that holds residual + skip of a fused norm; exporters leave it unnamed where nothing reads it. */
export function sumOf(node: GraphNode): string {
  return node.outputs[3] || `${node.name || node.outputs[0] || ''}/sum`
}

const SKIP_NORMS: ReadonlySet<string> = new Set([
  'SkipLayerNormalization',
  'SkipSimplifiedLayerNormalization',
])

export function isSkipNorm(node: GraphNode): boolean {
  return SKIP_NORMS.has(node.op)
}

/**
 * Splits the fused residual+norm nodes that `wanted` selects into an Add (two with a bias), which can end a
 * block, and a plain norm, which begins the next. The sum keeps its name.
 */
export function unfuseNorms(
  nodes: readonly GraphNode[],
  wanted: (node: GraphNode) => boolean,
): GraphNode[] {
  return nodes.flatMap((node) => (isSkipNorm(node) && wanted(node) ? split(node) : [node]))
}

function split(node: GraphNode): GraphNode[] {
  const isSimplified = node.op === 'SkipSimplifiedLayerNormalization'
  const [residual = '', skip = '', weight = ''] = node.inputs
  const [shift = '', bias = ''] = isSimplified ? ['', node.inputs[3]] : node.inputs.slice(3)
  const sum = sumOf(node)
  const plain = `${sum}/unbiased`
  const epsilon = node.attributes['epsilon']
  const add = (name: string, inputs: readonly string[], output: string): GraphNode => ({
    name: `${node.name}/${name}`,
    op: 'Add',
    domain: '',
    inputs,
    outputs: [output],
    attributes: {},
  })
  const sums =
    bias === ''
      ? [add('Add', [residual, skip], sum)]
      : [add('Add', [residual, skip], plain), add('AddBias', [plain, bias], sum)]
  return [
    ...sums,
    {
      name: `${node.name}/LayerNorm`,
      op: isSimplified ? 'SimplifiedLayerNormalization' : 'LayerNormalization',
      domain: '',
      inputs: shift === '' ? [sum, weight] : [sum, weight, shift],
      outputs: [node.outputs[0] ?? ''],
      attributes: { axis: int(-1), stash_type: int(1), ...(epsilon ? { epsilon } : {}) },
    },
  ]
}
