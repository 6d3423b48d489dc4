import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode } from '../graph/graph.ts'
import { describeNode } from './dialect.ts'
import { findLookup } from './embedding-lookup.ts'
import { readsShapeOnly, tokenPath } from './token-path.ts'
import { unfuseNorms } from './unfuse-norms.ts'

const PAST_KEY = /^past_key_values\.(\d+)\.key$/
/** Inputs of a decoder that this product knows how to feed. */
const KNOWN_INPUT =
  /^(input_ids|attention_mask|position_ids|(num_)?logits_to_keep|past_key_values\.\d+\.(key|value))$/
/** Operators that can be the product with the vocabulary. */
const PRODUCTS: ReadonlySet<string> = new Set([
  'DynamicQuantizeMatMul',
  'FusedMatMul',
  'Gemm',
  'MatMul',
  'MatMulBnb4',
  'MatMulInteger',
  'MatMulIntegerToFloat',
  'MatMulNBits',
])

/** The node of each decoder layer that reads its keys, in data order: names play no part. */
export function findAttention(graph: Graph): { layer: number; node: GraphNode }[] {
  checkInputs(graph)
  const found = new Map<number, GraphNode>()
  for (const node of graph.nodes) {
    if (readsShapeOnly(node)) continue
    for (const input of node.inputs) {
      const layer = Number(PAST_KEY.exec(input)?.[1] ?? NaN)
      if (Number.isNaN(layer) || found.has(layer)) continue
      found.set(layer, node)
    }
  }
  if (found.size === 0) {
    throw new CrowdError('model-unsupported', 'The graph reads no past_key_values: not a decoder.')
  }
  return [...found].map(([layer, node]) => ({ layer, node }))
}

/** State other than keys and values can't be cut to a position; other inputs nobody would feed. */
function checkInputs(graph: Graph): void {
  const unknown = graph.inputs.find(({ name }) => !KNOWN_INPUT.test(name))
  if (!unknown) return
  const reader = graph.nodes.find((node) => node.inputs.includes(unknown.name))
  const where = reader ? `${describeNode(reader)} reads` : 'The graph has'
  throw new CrowdError(
    'model-unsupported',
    `${where} the input ${unknown.name}, which can't be fed to a stage.`,
  )
}

/**
 * The one tensor that flows over each border: before every decoder layer, then before the head. A value is
 * a border when every path from the tokens to the logits goes through it; names play no part. The first
 * one is what the embedding's lookup gives.
 * @throws CrowdError model-unsupported where no single tensor separates two layers
 */
export function findBorders(graph: Graph): string[] {
  const attention = findAttention(graph)
  const lookup = findLookup(graph)
  const nodes = unfuseNorms(graph.nodes, () => true)
  const candidates = articulations(nodes)
  // Unfusing leaves attention nodes as they are.
  const anchors = attention.map(({ node }) => nodes.indexOf(node))

  const borders = attention.map(({ layer }, i) => {
    const from = i === 0 ? -1 : (anchors[i - 1] ?? -1)
    const to = anchors[i] ?? -1
    const border = candidates.findLast(
      ({ value, index }) => index > from && index < to && (i > 0 || value === lookup.output),
    )
    if (border) return border.value
    throw new CrowdError(
      'model-unsupported',
      `No single tensor separates decoder layer ${layer} from what comes before it.`,
    )
  })
  return [...borders, headBorder(nodes, candidates, anchors.at(-1) ?? -1)]
}

type Candidate = { readonly value: string; readonly index: number }

/** The last sum before the product with the vocabulary, so that the last norm is the head's. */
function headBorder(
  nodes: readonly GraphNode[],
  candidates: readonly Candidate[],
  lastAnchor: number,
): string {
  const path = tokenPath(nodes)
  const product = nodes.findLastIndex((node) => PRODUCTS.has(node.op) && path.has(node))
  const possible = candidates.filter(({ index }) => index > lastAnchor && index < product)
  const sum = possible.findLast(({ index }) => nodes[index]?.op === 'Add')
  const border = sum ?? possible.at(-1)
  if (border) return border.value
  throw new CrowdError('model-unsupported', 'No single tensor separates the head.')
}

/**
 * Values through which everything that depends on the tokens must pass, in order. Walking the nodes in
 * topological order, such a value is the only one that is still to be read after its node.
 */
function articulations(nodes: readonly GraphNode[]): Candidate[] {
  const relevant = tokenPath(nodes)
  const readers = new Map<string, number>()
  for (const node of relevant) {
    for (const input of new Set(node.inputs)) readers.set(input, (readers.get(input) ?? 0) + 1)
  }
  const live = new Map<string, number>([['input_ids', readers.get('input_ids') ?? 0]])
  const found: Candidate[] = []
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
