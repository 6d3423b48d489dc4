import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode, Initializer, ValueInfo } from '../graph/graph.ts'
import { producers, pruned } from '../graph/graph.ts'
import { checkDialect, describeNode } from './dialect.ts'
import { findAttention, findBorders } from './find-borders.ts'
import { isSkipNorm, sumOf, unfuseNorms } from './unfuse-norms.ts'

/** A decoder cut at every layer border. Graph names are those that manifest.ts documents. */
export type PartitionedModel = {
  /** The constants of the embedding: the table, or packed values and scales. */
  readonly table: readonly Initializer[]
  readonly hiddenSize: number
  readonly layers: readonly Graph[]
  readonly head: Graph
}

/**
 * Cuts a decoder graph by data flow into embedding, layers and head, with one f32 hidden tensor over each
 * border. Mask, position and rotary nodes are copied into each layer and fed by `seqlens_k` and
 * `total_sequence_length`; a fused residual+norm on a border becomes an Add before it and a norm after it.
 * @throws CrowdError model-unsupported (operator and node named), model-invalid
 */
export function partition(whole: Graph): PartitionedModel {
  checkDialect(whole)
  const attention = findAttention(whole)
  const borders = findBorders(whole)
  const onBorder = new Set(borders)
  const graph = {
    ...whole,
    nodes: unfuseNorms(whole.nodes, (node) => isSkipNorm(node) && onBorder.has(sumOf(node))),
  }
  const lookup = findLookup(graph, borders[0] ?? '')
  const table = embeddingTable(graph, lookup)
  const hiddenSize = hiddenWidth(lookup, table)
  const layers = attention.map(({ layer, node }, i) => {
    const [from = '', to = ''] = borders.slice(i, i + 2)
    return cutLayer(graph, { layer, node, from, to, hiddenSize })
  })
  return { table, hiddenSize, layers, head: cutHead(graph, borders.at(-1) ?? '', hiddenSize) }
}

function hiddenValue(name: string, hiddenSize: number): ValueInfo {
  return { name, type: 'f32', dims: [1, 'tokens', hiddenSize] }
}

type LayerCut = {
  readonly layer: number
  readonly node: GraphNode
  readonly from: string
  readonly to: string
  readonly hiddenSize: number
}

function cutLayer(graph: Graph, cut: LayerCut): Graph {
  const { layer, node, from, to, hiddenSize } = cut
  const cache = graph.inputs.find((input) => input.name === `past_key_values.${layer}.key`)
  const [, heads, , size] = cache?.dims ?? []
  if (cache?.type !== 'f32' || typeof heads !== 'number' || typeof size !== 'number') {
    throw new CrowdError(
      'model-unsupported',
      `The cache of layer ${layer} must be f32 with fixed heads and head size.`,
    )
  }
  const cacheValue = (name: string, length: string): ValueInfo => ({
    name,
    type: 'f32',
    dims: [1, heads, length, size],
  })
  const renames = new Map([
    [from, 'hidden'],
    ['input_ids', 'hidden'],
    [to, 'hidden_out'],
    [`past_key_values.${layer}.key`, 'past.key'],
    [`past_key_values.${layer}.value`, 'past.value'],
    [`present.${layer}.key`, 'present.key'],
    [`present.${layer}.value`, 'present.value'],
    [node.inputs[5] ?? '', 'seqlens_k'],
    [node.inputs[6] ?? '', 'total_sequence_length'],
  ])
  return extract(graph, renames, {
    name: `layer ${layer}`,
    inputs: [
      hiddenValue('hidden', hiddenSize),
      cacheValue('past.key', 'past'),
      cacheValue('past.value', 'past'),
      { name: 'seqlens_k', type: 'i32', dims: [1] },
      { name: 'total_sequence_length', type: 'i32', dims: [] },
    ],
    outputs: [
      hiddenValue('hidden_out', hiddenSize),
      cacheValue('present.key', 'present'),
      cacheValue('present.value', 'present'),
    ],
  })
}

function cutHead(graph: Graph, from: string, hiddenSize: number): Graph {
  const logits = graph.outputs.find((output) => output.name === 'logits')
  if (logits?.type !== 'f32') {
    throw new CrowdError('model-unsupported', 'The logits of the graph must be f32.')
  }
  return extract(graph, new Map([[from, 'hidden']]), {
    name: 'head',
    inputs: [hiddenValue('hidden', hiddenSize)],
    outputs: [{ name: 'logits', type: 'f32', dims: [1, 'tokens', logits.dims.at(-1) ?? 'vocab'] }],
  })
}

/** The part of `graph` between the renamed values and `rest.outputs`. */
function extract(
  graph: Graph,
  renames: ReadonlyMap<string, string>,
  rest: Pick<Graph, 'name' | 'inputs' | 'outputs'>,
): Graph {
  // An empty name is an input or output that is left out.
  const rename = (name: string): string => (name === '' ? '' : (renames.get(name) ?? name))
  const inputs = new Set(rest.inputs.map((input) => input.name))
  const nodes = graph.nodes
    .map((node) => ({
      ...node,
      inputs: node.inputs.map((input) => rename(input)),
      outputs: node.outputs.map((output) => rename(output)),
    }))
    // What makes an input of the block lies before the border.
    .filter((node) => !node.outputs.some((output) => inputs.has(output)))
  const block = pruned({ ...rest, nodes, initializers: graph.initializers })
  checkSelfContained(block, graph)
  return block
}

/** The token ids never cross a border; of the hidden tensor in their place only the lengths are the same. */
function checkSelfContained(block: Graph, graph: Graph): void {
  const known = new Set(block.inputs.map((input) => input.name))
  for (const initializer of block.initializers) known.add(initializer.name)
  for (const node of block.nodes) {
    for (const input of node.inputs) {
      if (input === '' || known.has(input)) continue
      throw new CrowdError(
        'model-unsupported',
        `${describeNode(node)} in ${block.name} reads ${input} from outside the block.`,
      )
    }
    for (const output of node.outputs) known.add(output)
  }
  const embedding = new Set(
    graph.nodes.filter((node) => node.inputs.includes('input_ids')).map((node) => node.name),
  )
  for (const node of block.nodes) {
    if (embedding.has(node.name) && node.op !== 'Shape') {
      throw new CrowdError(
        'model-unsupported',
        `${describeNode(node)} in ${block.name} reads the token ids.`,
      )
    }
  }
}

/** The one node that looks up the first hidden tensor. */
function findLookup(graph: Graph, border: string): GraphNode {
  const makers = producers(graph.nodes)
  const maker = makers.get(border)
  const node = maker?.op === 'Cast' ? makers.get(maker.inputs[0] ?? '') : maker
  if (node) return node
  throw new CrowdError('model-unsupported', `The embedding is not a plain lookup: ${border}.`)
}

/** The constants of the lookup. */
function embeddingTable(graph: Graph, node: GraphNode): Initializer[] {
  const names = lookupConstants(node)
  const table = names.flatMap(
    (name) => graph.initializers.find((entry) => entry.name === name) ?? [],
  )
  if (names.length > 0 && table.length === names.length) return table
  throw new CrowdError(
    'model-unsupported',
    `The embedding is not a plain lookup: ${describeNode(node)}.`,
  )
}

/** The constants that a lookup by token id reads; none where the node is something else. */
function lookupConstants(node: GraphNode): string[] {
  const [table = '', ids, scales = '', zeroPoints = ''] = node.inputs
  if (ids !== 'input_ids' || zeroPoints !== '') return []
  if (node.op === 'Gather') return [table]
  return node.op === 'GatherBlockQuantized' ? [table, scales] : []
}

function hiddenWidth(lookup: GraphNode, [rows]: readonly Initializer[]): number {
  const width = rows?.dims[1] ?? 0
  const bits = lookup.attributes['bits']
  return bits?.kind === 'int' ? (width * 8) / bits.value : width
}
