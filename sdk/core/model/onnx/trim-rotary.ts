import type { Graph, Initializer } from '../../graph/graph.ts'
import { producers } from '../../graph/graph.ts'

/** Which inputs of an operator are tables with a row for each position. */
const TABLES: Readonly<Record<string, readonly number[]>> = {
  GroupQueryAttention: [7, 8],
  RotaryEmbedding: [2, 3],
}

/** Names of the stored tables with a row for each position. */
export function rotaryTables(graph: Graph): Set<string> {
  const makers = producers(graph.nodes)
  const names = graph.nodes.flatMap(({ op, inputs }) =>
    (TABLES[op] ?? []).flatMap((at) => {
      const name = inputs[at] ?? ''
      const maker = makers.get(name)
      // A half table is widened first.
      return name === '' ? [] : [maker?.op === 'Cast' ? (maker.inputs[0] ?? '') : name]
    }),
  )
  const constants = new Set(graph.initializers.map(({ name }) => name))
  return new Set(names.filter((name) => constants.has(name)))
}

/** Positions that all tables cover; Infinity where there is none. */
export function rotaryRows(graph: Graph): number {
  const tables = rotaryTables(graph)
  return Math.min(
    Infinity,
    ...graph.initializers.flatMap(({ name, dims }) => (tables.has(name) ? [dims[0] ?? 0] : [])),
  )
}

/** Cuts the tables, which every layer holds, to the context that is served. */
export function trimRotary(graph: Graph, contextLength: number): Graph {
  const tables = rotaryTables(graph)
  const trim = (entry: Initializer): Initializer => {
    const [rows = 0, ...rest] = entry.dims
    if (!tables.has(entry.name) || rows <= contextLength) return entry
    const { data } = entry
    const whole = data.kind === 'inline' ? data.bytes.length : data.length
    const length = (whole / rows) * contextLength
    const cut =
      data.kind === 'inline'
        ? { ...data, bytes: data.bytes.subarray(0, length) }
        : { ...data, length }
    return { ...entry, dims: [contextLength, ...rest], data: cut }
  }
  return { ...graph, initializers: graph.initializers.map(trim) }
}
