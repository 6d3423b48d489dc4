import { CrowdError } from '../errors.ts'
import { int, type Graph, type GraphNode, type Initializer } from '../graph/graph.ts'
import type { BlockShape } from '../tensor/dequantize-blocks.ts'
import { Q4_MIDDLE } from '../tensor/quantize-q4.ts'
import { asBytes, asFloats } from '../tensor/views.ts'
import { blockShape } from './expand-q4.ts'
import type { ReadConstant } from './fold-constants.ts'

/**
 * Products with 4-bit weights whose zero points are f32, which no provider has a fast kernel for, as those with the middle
 * for a zero point, plus the rest: per block of columns the sum of its activations times (middle - zero point) * scale.
 * Where all zero points are the middle there is no rest. The sums are shared by what reads the same activations.
 */
export function splitOffsets(graph: Graph, read: ReadConstant): Graph {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const added = new Map<string, Initializer>()
  const summed = new Map<string, { readonly name: string; readonly nodes: GraphNode[] }>()
  const constant = (name: string, data: ArrayBufferView<ArrayBuffer>, entry: Place): string => {
    added.set(name, { name, ...entry, data: { kind: 'inline', bytes: asBytes(data) } })
    return name
  }
  const nodes = graph.nodes.flatMap((node): GraphNode[] => {
    const product = offsetProduct(node, constants)
    if (product === null) return [node]
    const { input, plain, shape, zeros, scales } = product
    const offsets = offsetsOf(asFloats(read(zeros)), asFloats(read(scales)), shape.rows)
    if (offsets === null) return [plain]
    const blocks = offsets.length / shape.rows
    const key = `${input}/sums_${blocks}`
    const known = summed.get(key)
    const sums = known ?? addSums({ input, key, blocks, ...shape }, constant)
    summed.set(key, sums)
    const place = { type: 'f32', dims: [blocks, shape.rows] } as const
    const matrix = constant(`${zeros.name}.offsets`, offsets, place)
    const [output = ''] = node.outputs
    const [middle, offset] = [`${output}/middle`, `${output}/offset`]
    return [
      ...(known ? [] : sums.nodes),
      { ...plain, outputs: [middle] },
      operation('MatMul', offset, [sums.name, matrix]),
      { ...operation('Add', output, [middle, offset]), name: `${node.name}/Add_offset` },
    ]
  })
  return { ...graph, nodes, initializers: [...graph.initializers, ...added.values()] }
}

type OffsetProduct = {
  readonly input: string
  /** The same node with the middle for a zero point. */
  readonly plain: GraphNode
  readonly shape: BlockShape
  readonly zeros: Initializer
  readonly scales: Initializer
}

/** Null for every other node. */
function offsetProduct(
  node: GraphNode,
  constants: ReadonlyMap<string, Initializer>,
): OffsetProduct | null {
  const [input = '', packed = '', scaleName = '', zeroName = '', ...rest] = node.inputs
  const shape = blockShape(node)
  const zeros = constants.get(zeroName)
  const scales = constants.get(scaleName)
  if (shape?.bits !== 4 || zeros?.type !== 'f32' || scales?.type !== 'f32') return null
  const others = rest.length > 0 ? ['', ...rest] : []
  const plain = { ...node, inputs: [input, packed, scaleName, ...others] }
  return { input, plain, shape, zeros, scales }
}

type Place = Pick<Initializer, 'type' | 'dims'>

/** [blocks, rows]; null where all are zero. */
function offsetsOf(
  zeros: Float32Array,
  scales: Float32Array,
  rows: number,
): Float32Array<ArrayBuffer> | null {
  if (zeros.length !== scales.length || zeros.length % rows !== 0) {
    throw new CrowdError('model-invalid', 'A quantised matrix needs a zero point for each scale.')
  }
  if (zeros.every((zero) => zero === Q4_MIDDLE)) return null
  const blocks = zeros.length / rows
  const offsets = new Float32Array(zeros.length)
  for (let row = 0; row < rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const at = row * blocks + block
      offsets[block * rows + row] = (Q4_MIDDLE - (zeros[at] ?? 0)) * (scales[at] ?? 0)
    }
  }
  return offsets
}

type Sums = {
  readonly input: string
  readonly key: string
  readonly blocks: number
  readonly columns: number
  readonly blockSize: number
}

/** [.., columns] -> [tokens, blocks], whatever the rank of the input. */
function addSums(
  { input, key, blocks, columns, blockSize }: Sums,
  constant: (name: string, data: ArrayBufferView<ArrayBuffer>, entry: Place) => string,
): { readonly name: string; readonly nodes: GraphNode[] } {
  const longs = (name: string, values: readonly number[]): string =>
    constant(name, BigInt64Array.from(values, BigInt), { type: 'i64', dims: [values.length] })
  const missing = blocks * blockSize - columns
  const shape = longs(`offsets.shape_${blocks}`, [-1, blocks, blockSize])
  const axis = longs('offsets.axis', [2])
  const [full, split, name] = [`${key}/full`, `${key}/split`, key]
  const sum = { ...operation('ReduceSum', name, [split, axis]), attributes: { keepdims: int(0) } }
  if (missing === 0) return { name, nodes: [operation('Reshape', split, [input, shape]), sum] }
  const rows = longs(`offsets.rows_${columns}`, [-1, columns])
  const pads = longs(`offsets.pads_${missing}`, [0, 0, 0, missing])
  return {
    name,
    nodes: [
      operation('Reshape', `${key}/rows`, [input, rows]),
      operation('Pad', full, [`${key}/rows`, pads]),
      operation('Reshape', split, [full, shape]),
      sum,
    ],
  }
}

/** A node of the default domain that is named as its output. */
function operation(op: string, output: string, inputs: readonly string[]): GraphNode {
  return { name: output, op, domain: '', inputs, outputs: [output], attributes: {} }
}
