import type { Graph, GraphNode } from '../graph/graph.ts'

/** Operators that look at the shape of a value only. */
const SHAPE_ONLY: ReadonlySet<string> = new Set(['Shape', 'Size'])

export function readsShapeOnly(node: GraphNode): boolean {
  return SHAPE_ONLY.has(node.op)
}

/** Values that depend on what the tokens are, be it through the caches, and not just on how many there are. */
export function tokenValues(graph: Graph): Set<string> {
  const dependent = new Set(
    graph.inputs.map(({ name }) => name).filter((name) => /^(input_ids$|past)/.test(name)),
  )
  for (const node of graph.nodes) {
    if (readsShapeOnly(node) || !node.inputs.some((input) => dependent.has(input))) continue
    for (const output of node.outputs) if (output) dependent.add(output)
  }
  return dependent
}

/** Nodes that depend on the tokens of this step and lead to the logits. */
export function tokenPath(nodes: readonly GraphNode[]): Set<GraphNode> {
  const dependent = new Set(['input_ids'])
  const forward: GraphNode[] = []
  for (const node of nodes) {
    if (readsShapeOnly(node) || !node.inputs.some((input) => dependent.has(input))) continue
    forward.push(node)
    for (const output of node.outputs) if (output) dependent.add(output)
  }
  const wanted = new Set(['logits'])
  const path = new Set<GraphNode>()
  for (const node of forward.reverse()) {
    if (!node.outputs.some((output) => wanted.has(output))) continue
    path.add(node)
    for (const input of node.inputs) wanted.add(input)
  }
  return path
}

/** Operators whose result has the shape of the first input, or of the larger where they take two. */
const KEEPS_SHAPE: ReadonlySet<string> = new Set([
  'Add',
  'Cast',
  'Div',
  'LayerNormalization',
  'Mul',
  'Pow',
  'SimplifiedLayerNormalization',
  'Sub',
])

/** The given values and those that are computed from one of them and vectors, without a change of shape. */
export function shapedLike(graph: Graph, values: readonly string[]): Set<string> {
  const alike = new Set(values)
  const positions = positionRows(graph)
  const vectors = new Set(
    graph.initializers.filter(({ dims }) => dims.length <= 1).map(({ name }) => name),
  )
  const isSmall = (input: string): boolean => vectors.has(input) || positions.has(input)
  for (const node of graph.nodes) {
    const others = node.inputs.filter((input) => !alike.has(input) && !isSmall(input))
    const hasOne = node.inputs.some((input) => alike.has(input))
    if (!KEEPS_SHAPE.has(node.op) || !hasOne || others.length > 0) continue
    for (const output of node.outputs) if (output) alike.add(output)
  }
  return alike
}

/** Rows of tables that are looked up by something else than a constant: one for each token. */
function positionRows(graph: Graph): Set<string> {
  const dims = new Map(graph.initializers.map((entry) => [entry.name, entry.dims]))
  const rows = new Set<string>()
  for (const { op, inputs, outputs } of graph.nodes) {
    const [table = '', index = ''] = inputs
    const isLookup = op === 'Gather' && dims.get(table)?.length === 2 && !dims.has(index)
    const isCast = op === 'Cast' && rows.has(table)
    if (isLookup || isCast) rows.add(outputs[0] ?? '')
  }
  return rows
}
