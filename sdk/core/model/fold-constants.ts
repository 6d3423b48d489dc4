import type { Attribute, Graph, GraphNode, Initializer } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import { elementCount } from '../tensor/dtype.ts'
import { bfloatsToFloats, halvesToFloats } from '../tensor/float16.ts'
import { asBytes, asFloats, asHalves } from '../tensor/views.ts'

/** Bytes of a constant, wherever they lie. @throws CrowdError model-invalid */
export type ReadConstant = (initializer: Initializer) => Uint8Array

type Floats = { readonly dims: readonly number[]; readonly values: Float32Array<ArrayBuffer> }

/**
 * Computes what depends on constants only: half weights become f32, and the rotary tables come into being.
 * Done here and not by the runtime, so that all providers get the same bits and nothing is held twice.
 */
export function foldConstants(graph: Graph, read: ReadConstant): Graph {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const nodes: GraphNode[] = []
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((input) => constants.get(input))
    const known = inputs.filter((input) => input !== undefined)
    const folded = known.length === inputs.length ? evaluate(node, known, read) : null
    const name = node.outputs[0]
    if (folded === null || name === undefined) {
      nodes.push(node)
      continue
    }
    const { dims, values } = folded
    const data = { kind: 'inline', bytes: asBytes(values) } as const
    constants.set(name, { name, type: 'f32', dims, data })
  }
  return { ...graph, nodes, initializers: [...constants.values()] }
}

/** The f32 result of one node, or null where this operator isn't folded. */
function evaluate(
  node: GraphNode,
  inputs: readonly Initializer[],
  read: ReadConstant,
): Floats | null {
  const [first, second, third] = inputs
  if (!first) return null
  const floats = (initializer: Initializer): Floats => ({
    dims: initializer.dims,
    values: asFloats(read(initializer)),
  })
  switch (node.op) {
    case 'Cast':
      return toFloats(first, node.attributes['to'], read)
    case 'Range':
      return second && third && first.type === 'f32'
        ? range(floats(first), floats(second), floats(third))
        : null
    case 'Reshape':
      return first.type === 'f32' && second ? reshape(floats(first), read(second)) : null
    case 'Mul':
      return first.type === 'f32' && second ? outer(floats(first), floats(second)) : null
    case 'Cos':
      return { dims: first.dims, values: floats(first).values.map(Math.cos) }
    case 'Sin':
      return { dims: first.dims, values: floats(first).values.map(Math.sin) }
    default:
      return null
  }
}

function toFloats(
  input: Initializer,
  to: Attribute | undefined,
  read: ReadConstant,
): Floats | null {
  if (to?.kind !== 'int' || to.value !== TYPE_CODES.f32) return null
  if (input.type === 'f16') {
    return { dims: input.dims, values: halvesToFloats(asHalves(read(input))) }
  }
  if (input.type === 'bf16') {
    return { dims: input.dims, values: bfloatsToFloats(asHalves(read(input))) }
  }
  return null
}

function range(start: Floats, limit: Floats, step: Floats): Floats {
  const from = start.values[0] ?? 0
  const by = step.values[0] ?? 1
  const length = Math.max(0, Math.ceil(((limit.values[0] ?? 0) - from) / by))
  return { dims: [length], values: Float32Array.from({ length }, (_, i) => from + i * by) }
}

function reshape(input: Floats, shape: Uint8Array): Floats | null {
  const view = new DataView(shape.buffer, shape.byteOffset, shape.byteLength)
  const wanted = Array.from({ length: shape.byteLength / 8 }, (_, i) =>
    Number(view.getBigInt64(8 * i, true)),
  )
  if (wanted.includes(0)) return null
  const rest = elementCount(wanted.filter((dim) => dim !== -1))
  const dims = wanted.map((dim) => (dim === -1 ? input.values.length / rest : dim))
  return elementCount(dims) === input.values.length ? { dims, values: input.values } : null
}

/** A column [m, 1] times a row [1, n]; the one product of constants that our graphs hold. */
function outer(column: Floats, row: Floats): Floats | null {
  const [m = 0, one] = column.dims
  const [also, n = 0] = row.dims
  if (one !== 1 || also !== 1 || column.dims.length !== 2 || row.dims.length !== 2) return null
  const values = new Float32Array(m * n)
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) values[i * n + j] = (column.values[i] ?? 0) * (row.values[j] ?? 0)
  }
  return { dims: [m, n], values }
}
