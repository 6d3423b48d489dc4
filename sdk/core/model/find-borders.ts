import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode } from '../graph/graph.ts'
import { describeNode } from './dialect.ts'
import { unfuseNorms } from './unfuse-norms.ts'

const PAST_KEY = /^past_key_values\.(\d+)\.key$/

/** The attention node of each decoder layer, found by the cache that it reads, in data order. */
export function findAttention(graph: Graph): { layer: number; node: GraphNode }[] {
  const found: { layer: number; node: GraphNode }[] = []
  for (const node of graph.nodes) {
    for (const input of node.inputs) {
      const layer = PAST_KEY.exec(input)?.[1]
      if (layer === undefined) continue
      if (node.op !== 'GroupQueryAttention') {
        throw new CrowdError(
          'model-unsupported',
          `${describeNode(node)} reads the cache of layer ${layer}; only GroupQueryAttention may.`,
        )
      }
      found.push({ layer: Number(layer), node })
    }
  }
  if (found.length === 0) {
    throw new CrowdError('model-unsupported', 'The graph reads no past_key_values: not a decoder.')
  }
  return found
}

/**
 * The one tensor that flows over each border: before every decoder layer, then before the head. A value is
 * a border when every path from the tokens to the logits goes through it; names play no part.
 * @throws CrowdError model-unsupported where no single tensor separates two layers
 */
export function findBorders(graph: Graph): string[] {
  const attention = findAttention(graph)
  const nodes = unfuseNorms(graph.nodes, () => true)
  const candidates = articulations(nodes)
  // Unfusing leaves attention nodes as they are.
  const anchors = attention.map(({ node }) => nodes.indexOf(node))

  const borders = attention.map(({ layer }, i) => {
    const from = anchors[i - 1] ?? -1
    const to = anchors[i] ?? -1
    const between = candidates.filter(({ index }) => index > from && index < to)
    const border = i === 0 ? lookedUp(between, nodes) : between.at(-1)
    if (border) return border.value
    throw new CrowdError(
      'model-unsupported',
      `No single tensor separates decoder layer ${layer} from what comes before it.`,
    )
  })
  const last = anchors.at(-1) ?? -1
  const norm = candidates.findLast(({ index }) => NORMS.has(nodes[index]?.op ?? ''))
  const head = candidates.findLast(
    ({ index }) => index > last && index < (norm?.index ?? -1) && nodes[index]?.op === 'Add',
  )
  if (!head) throw new CrowdError('model-unsupported', 'No single tensor separates the head.')
  return [...borders, head.value]
}

const NORMS: ReadonlySet<string> = new Set(['SimplifiedLayerNormalization', 'LayerNormalization'])

/** The embedding's rows as f32: what is done to them afterwards belongs to the first layer. */
function lookedUp(
  candidates: readonly Articulation[],
  nodes: readonly GraphNode[],
): Articulation | undefined {
  const [rows, next] = candidates
  return next && nodes[next.index]?.op === 'Cast' ? next : rows
}

type Articulation = { readonly value: string; readonly index: number }

/**
 * Values through which everything that depends on the tokens must pass, in order. Walking the nodes in
 * topological order, such a value is the only one that is still to be read after its node.
 */
function articulations(nodes: readonly GraphNode[]): Articulation[] {
  const relevant = tokenPath(nodes)
  const readers = new Map<string, number>()
  for (const node of relevant) {
    for (const input of new Set(node.inputs)) readers.set(input, (readers.get(input) ?? 0) + 1)
  }
  const live = new Map<string, number>([['input_ids', readers.get('input_ids') ?? 0]])
  const found: Articulation[] = []
  nodes.forEach((node, index) => {
    if (!relevant.has(node)) return
    for (const input of new Set(node.inputs)) {
      const left = (live.get(input) ?? 0) - 1
      if (left > 0) live.set(input, left)
      else live.delete(input)
    }
    for (const output of node.outputs) {
      const count = readers.get(output) ?? 0
      if (count > 0) live.set(output, count)
    }
    const [only] = live.keys()
    if (live.size === 1 && only !== undefined && node.outputs.includes(only)) {
      found.push({ value: only, index })
    }
  })
  return found
}

/** Nodes that depend on the tokens themselves (not just on how many there are) and lead to the logits. */
function tokenPath(nodes: readonly GraphNode[]): Set<GraphNode> {
  const dependent = new Set(['input_ids'])
  const forward: GraphNode[] = []
  for (const node of nodes) {
    if (node.op === 'Shape' || !node.inputs.some((input) => dependent.has(input))) continue
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
