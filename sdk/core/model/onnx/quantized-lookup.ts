import { consumers, int, type Graph, type GraphNode, type Initializer } from '../../graph/graph.ts'
import { asBytes, asFloats } from '../../tensor/views.ts'
import { MICROSOFT } from '../graph-builder.ts'

/** A graph, and the tables of signed bytes that become unsigned ones by adding 128. */
export type QuantizedLookup = { readonly graph: Graph; readonly shifted: ReadonlySet<string> }

/**
 * Dynamic quantisation writes the embedding as a Gather of bytes and a DequantizeLinear with one scale.
 * The two become the one quantised lookup that this product reads, with the scale repeated for each row.
 */
export function joinQuantizedLookup(graph: Graph): QuantizedLookup {
  const made: Initializer[] = []
  const shifted = new Set<string>()
  const replaced = new Map<GraphNode, GraphNode | null>()
  for (const pair of lookupPairs(graph)) {
    const { node, reader, table, scale, zero } = pair
    const [rows = 0, columns = 0] = table.dims
    const isSigned = table.type === 'i8'
    const bytes = `${table.name}/bytes`
    if (isSigned) shifted.add(bytes)
    const point = (zero + (isSigned ? 128 : 0)) & 255
    const constants = [
      { ...table, name: bytes, type: 'u8' as const },
      constant(`${table.name}/scales`, 'f32', asBytes(new Float32Array(rows).fill(scale))),
      constant(`${table.name}/zeros`, 'u8', new Uint8Array(rows).fill(point)),
    ]
    made.push(...constants)
    const names = constants.map(({ name }) => name)
    replaced.set(node, lookup(node, reader, names, columns))
    replaced.set(reader, null)
  }
  const nodes = graph.nodes.flatMap((node) => {
    const other = replaced.get(node)
    return other === undefined ? [node] : (other ?? [])
  })
  return { graph: { ...graph, nodes, initializers: [...graph.initializers, ...made] }, shifted }
}

type LookupPair = {
  readonly node: GraphNode
  readonly reader: GraphNode
  readonly table: Initializer
  readonly scale: number
  /** As it is stored, 0 to 255. */
  readonly zero: number
}

function lookupPairs(graph: Graph): LookupPair[] {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const readers = consumers(graph.nodes)
  const at = (node: GraphNode, input: number): Initializer | undefined =>
    constants.get(node.inputs[input] ?? '')
  return graph.nodes.flatMap((node) => {
    const table = node.op === 'Gather' ? at(node, 0) : undefined
    if (!table || !isByteMatrix(table)) return []
    const [reader, ...others] = readers.get(node.outputs[0] ?? '') ?? []
    if (reader?.op !== 'DequantizeLinear' || others.length > 0) return []
    const scale = onlyScale(at(reader, 1))
    const zero = onlyByte(at(reader, 2))
    return scale === null || zero === null ? [] : [{ node, reader, table, scale, zero }]
  })
}

function isByteMatrix({ type, dims }: Initializer): boolean {
  return (type === 'u8' || type === 'i8') && dims.length === 2
}

function lookup(
  node: GraphNode,
  reader: GraphNode,
  [bytes = '', scales = '', zeros = '']: readonly string[],
  columns: number,
): GraphNode {
  return {
    name: node.name,
    op: 'GatherBlockQuantized',
    domain: MICROSOFT,
    inputs: [bytes, node.inputs[1] ?? '', scales, zeros],
    outputs: reader.outputs,
    attributes: {
      bits: int(8),
      block_size: int(columns),
      gather_axis: int(0),
      quantize_axis: int(1),
    },
  }
}

/** Null where the table has more than one scale. */
function onlyScale(scale: Initializer | undefined): number | null {
  if (scale?.type !== 'f32' || scale.data.kind !== 'inline') return null
  const values = asFloats(scale.data.bytes)
  return values.length === 1 ? (values[0] ?? null) : null
}

function onlyByte(zero: Initializer | undefined): number | null {
  if (zero === undefined) return 0
  return zero.data.kind === 'inline' ? (zero.data.bytes[0] ?? 0) : null
}

function constant(name: string, type: 'f32' | 'u8', bytes: Uint8Array): Initializer {
  const dims = [type === 'f32' ? bytes.length / 4 : bytes.length, 1]
  return { name, type, dims, data: { kind: 'inline', bytes } }
}
