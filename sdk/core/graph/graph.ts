import type { TensorType } from '../tensor/dtype.ts'

/** A number, or the name of a size that is known only at run time. */
export type Dim = number | string

export type ValueInfo = {
  readonly name: string
  readonly type: TensorType
  readonly dims: readonly Dim[]
}

/** Bytes in the graph itself, or a range of a file beside it. Little endian, row-major. */
export type TensorData =
  | { readonly kind: 'inline'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'external'
      readonly location: string
      readonly offset: number
      readonly length: number
    }

/** A constant tensor. */
export type Initializer = {
  readonly name: string
  readonly type: TensorType
  readonly dims: readonly number[]
  readonly data: TensorData
}

export type Attribute =
  | { readonly kind: 'int'; readonly value: number }
  | { readonly kind: 'float'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'ints'; readonly value: readonly number[] }
  | { readonly kind: 'floats'; readonly value: readonly number[] }
  | { readonly kind: 'strings'; readonly value: readonly string[] }
  | { readonly kind: 'tensor'; readonly value: Initializer }

/** One operation. An empty input name is an optional input that is left out. */
export type GraphNode = {
  readonly name: string
  readonly op: string
  /** '' = ONNX's own operators, 'com.microsoft' = ONNX Runtime's. */
  readonly domain: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes: Readonly<Record<string, Attribute>>
}

/** An ONNX graph in memory. Nodes are in topological order, as ONNX demands. */
export type Graph = {
  readonly name: string
  /** Version of ONNX's own operators that the nodes are written in; absent: `OPSET_VERSION`. */
  readonly opset?: number
  readonly inputs: readonly ValueInfo[]
  readonly outputs: readonly ValueInfo[]
  readonly initializers: readonly Initializer[]
  readonly nodes: readonly GraphNode[]
}

/** Value name → the node that makes it. */
export function producers(nodes: readonly GraphNode[]): Map<string, GraphNode> {
  const map = new Map<string, GraphNode>()
  for (const node of nodes) for (const output of node.outputs) if (output) map.set(output, node)
  return map
}

/** Value name → the nodes that read it, in order. */
export function consumers(nodes: readonly GraphNode[]): Map<string, GraphNode[]> {
  const map = new Map<string, GraphNode[]>()
  for (const node of nodes) {
    for (const input of new Set(node.inputs)) {
      const readers = map.get(input)
      if (readers) readers.push(node)
      else map.set(input, [node])
    }
  }
  return map
}

/** The same graph without the nodes and constants that no output needs. */
export function pruned(graph: Graph): Graph {
  const needed = new Set(graph.outputs.map((output) => output.name))
  const kept: GraphNode[] = []
  for (const node of graph.nodes.toReversed()) {
    if (!node.outputs.some((output) => needed.has(output))) continue
    kept.push(node)
    for (const input of node.inputs) needed.add(input)
  }
  return {
    ...graph,
    nodes: kept.reverse(),
    initializers: graph.initializers.filter((initializer) => needed.has(initializer.name)),
  }
}

export function int(value: number): Attribute {
  return { kind: 'int', value }
}

export function float(value: number): Attribute {
  return { kind: 'float', value }
}

export function ints(...value: number[]): Attribute {
  return { kind: 'ints', value }
}

export function string(value: string): Attribute {
  return { kind: 'string', value }
}
