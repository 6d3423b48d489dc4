import { consumers, int, type Graph, type GraphNode, type Initializer } from '../../graph/graph.ts'
import { MICROSOFT } from '../graph-builder.ts'

/** A graph, and the constants that lie the other way round in the file: [columns, rows]. */
export type TransposedWeights = { readonly graph: Graph; readonly transposed: ReadonlySet<string> }

/**
 * Exporters tie a head to the embedding by a Transpose of the one matrix, which every step would repeat.
 * A product with a transposed matrix becomes one node; a lookup in a transposed matrix makes the import
 * turn it, and the product with it is told so, so that both still read the same bytes.
 */
export function foldTransposes(graph: Graph): TransposedWeights {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const readers = consumers(graph.nodes)
  const turned = new Map<string, string>()
  const made: Initializer[] = []
  const sources = new Map<string, string>()
  for (const node of graph.nodes) {
    const [input = ''] = node.inputs
    const [output = ''] = node.outputs
    const matrix = constants.get(input)
    if (node.op !== 'Transpose' || matrix?.dims.length !== 2 || !isSwap(node)) continue
    sources.set(output, input)
    const isLookup = (readers.get(output) ?? []).some(
      ({ op, inputs }) => op === 'Gather' && inputs[0] === output,
    )
    if (!isLookup) continue
    turned.set(input, output)
    made.push({ ...matrix, name: output, dims: matrix.dims.toReversed() })
  }
  const nodes = graph.nodes
    .filter((node) => !made.some(({ name }) => node.outputs[0] === name))
    .map((node): GraphNode => {
      const [left = '', right = ''] = node.inputs
      if (node.op !== 'MatMul') return node
      const source =
        turned.get(right) ?? (turned.has(sources.get(right) ?? '') ? '' : sources.get(right))
      return source ? product(node, [left, source]) : node
    })
  return {
    graph: { ...graph, nodes, initializers: [...graph.initializers, ...made] },
    transposed: new Set(made.map(({ name }) => name)),
  }
}

function isSwap(node: GraphNode): boolean {
  const perm = node.attributes['perm']
  return perm?.kind !== 'ints' || (perm.value[0] === 1 && perm.value[1] === 0)
}

function product(node: GraphNode, inputs: readonly string[]): GraphNode {
  return { ...node, op: 'FusedMatMul', domain: MICROSOFT, inputs, attributes: { transB: int(1) } }
}
