import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode, Initializer } from '../graph/graph.ts'
import { describeNode } from './dialect.ts'
import { intOf } from './onnx/constant-value.ts'

/** The one lookup that turns token ids into the first hidden tensor. */
export type EmbeddingLookup = {
  readonly node: GraphNode
  /** The f32 hidden tensor: what the lookup gives, or the Cast after it. */
  readonly output: string
  /** The table; of a quantised one packed values, scales and, where it has them, zero points. */
  readonly constants: readonly Initializer[]
  /** Of a quantised table. */
  readonly quantized: { readonly bits: number; readonly blockSize: number } | null
  readonly columns: number
}

/**
 * Finds the lookup. What exporters do with its result (scaling, adding positions, a norm) belongs to the
 * first layer.
 * @throws CrowdError model-unsupported where the first hidden tensor is no plain lookup
 */
export function findLookup(graph: Graph): EmbeddingLookup {
  const ids = idNames(graph)
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const node = graph.nodes.find(
    ({ op, inputs }) =>
      op !== 'Shape' && !ids.has(inputs[0] ?? '') && inputs.some((input) => ids.has(input)),
  )
  if (!node) throw new CrowdError('model-unsupported', 'No node of the graph looks up the tokens.')
  const names = lookupConstants(node, ids)
  const found = names.flatMap((name) => constants.get(name) ?? [])
  const [table] = found
  if (!table || found.length !== names.length || table.dims.length !== 2) {
    throw new CrowdError(
      'model-unsupported',
      `The embedding is not a plain lookup: ${describeNode(node)}.`,
    )
  }
  const quantized =
    node.op === 'Gather'
      ? null
      : {
          bits: intOf(node.attributes['bits'], 4),
          blockSize: intOf(node.attributes['block_size'], 128),
        }
  const width = table.dims[1] ?? 0
  const columns = quantized === null ? width : (width * 8) / quantized.bits
  return { node, output: widened(graph, node), constants: found, quantized, columns }
}

/** The token ids, and the same in another type or with their one row spelled out. */
export function idNames(graph: Graph): Set<string> {
  const names = new Set(['input_ids'])
  for (const node of graph.nodes) {
    const [input = ''] = node.inputs
    const isSame = node.op === 'Cast' || node.op === 'Reshape'
    if (isSame && names.has(input)) names.add(node.outputs[0] ?? '')
  }
  return names
}

/** The constants that a lookup by token id reads; none where the node is something else. */
function lookupConstants(node: GraphNode, ids: ReadonlySet<string>): string[] {
  const [table = '', index = '', ...rest] = node.inputs
  if (!ids.has(index) || intOf(node.attributes['axis'], 0) !== 0) return []
  if (node.op === 'Gather') return [table]
  if (node.op !== 'GatherBlockQuantized') return []
  const { gather_axis: gather, quantize_axis: quantize } = node.attributes
  if (intOf(gather, 0) !== 0 || intOf(quantize, 1) !== 1) return []
  return [table, ...rest.filter((name) => name !== '')]
}

function widened(graph: Graph, node: GraphNode): string {
  const [output = ''] = node.outputs
  const readers = graph.nodes.filter(({ inputs }) => inputs.includes(output))
  const [only] = readers
  const isCast = readers.length === 1 && only?.op === 'Cast'
  return isCast ? (only.outputs[0] ?? output) : output
}
