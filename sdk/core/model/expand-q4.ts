import {
  int,
  type Attribute,
  type Graph,
  type GraphNode,
  type Initializer,
} from '../graph/graph.ts'
import { dequantizeBlocks, type BlockMatrix, type BlockShape } from '../tensor/dequantize-blocks.ts'
import { dequantizeBnb4 } from '../tensor/dequantize-bnb4.ts'
import { asBytes, asFloats } from '../tensor/views.ts'
import type { ReadConstant } from './fold-constants.ts'
import { MICROSOFT } from './graph-builder.ts'

type FindConstant = (name: string | undefined) => Initializer | undefined
type Matrix = { readonly dims: number[]; readonly values: Float32Array<ArrayBuffer> }

/**
 * Replaces products with matrices in 2, 4 or 8 bits by f32 ones. WASM has no kernel for them: it would
 * dequantise the whole matrix in every call, ten times slower than f32. `wanted` selects by node.
 */
export function expandQ4(
  graph: Graph,
  read: ReadConstant,
  wanted: (node: GraphNode) => boolean,
): Graph {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const made: Initializer[] = []
  const nodes = graph.nodes.flatMap((node): GraphNode[] => {
    const isQuantized = node.op === 'MatMulNBits' || node.op === 'MatMulBnb4'
    if (!isQuantized || !wanted(node)) return [node]
    const matrix = expand(node, read, (name) => constants.get(name ?? ''))
    if (matrix === null) return [node]
    const name = `${node.inputs[1] ?? ''}.f32`
    if (!made.some((entry) => entry.name === name)) {
      const { dims, values } = matrix
      made.push({ name, type: 'f32', dims, data: { kind: 'inline', bytes: asBytes(values) } })
    }
    return product(node, name)
  })
  return { ...graph, nodes, initializers: [...graph.initializers, ...made] }
}

/** The node with the matrix [rows, columns] `matrix`, and the addition of the bias where it has one. */
function product(node: GraphNode, matrix: string): GraphNode[] {
  const [input = ''] = node.inputs
  const [output = ''] = node.outputs
  const bias = node.op === 'MatMulNBits' ? (node.inputs[5] ?? '') : ''
  const plain = bias === '' ? output : `${output}/unbiased`
  const multiply: GraphNode = {
    name: node.name,
    op: 'FusedMatMul',
    domain: MICROSOFT,
    inputs: [input, matrix],
    outputs: [plain],
    attributes: { transB: int(1) },
  }
  if (bias === '') return [multiply]
  return [
    multiply,
    {
      name: `${node.name}/bias`,
      op: 'Add',
      domain: '',
      inputs: [plain, bias],
      outputs: [output],
      attributes: {},
    },
  ]
}

/** [N, K]; null where the node has what isn't expanded. */
function expand(node: GraphNode, read: ReadConstant, find: FindConstant): Matrix | null {
  const packed = find(node.inputs[1])
  const scales = find(node.inputs[2])
  const shape = blockShape(node)
  if (packed?.type !== 'u8' || scales?.type !== 'f32' || !shape) return null
  const bytes = read(packed)
  const floats = asFloats(read(scales))
  const { rows, columns, blockSize } = shape
  const dims = [rows, columns]
  if (node.op === 'MatMulBnb4') {
    const kind = number(node.attributes['quant_type']) === 1 ? 'nf4' : 'fp4'
    const options = { count: rows * columns, blockSize, kind } as const
    return { dims, values: dequantizeBnb4(bytes, floats, options) }
  }
  const zeros = zeroPoints(node, read, find)
  if (zeros === undefined) return null
  return { dims, values: dequantizeBlocks({ packed: bytes, scales: floats, zeros, shape }) }
}

/** Null where there are none; undefined where they, or an order of the columns, can't be read. */
function zeroPoints(
  node: GraphNode,
  read: ReadConstant,
  find: FindConstant,
): BlockMatrix['zeros'] | undefined {
  const [, , , name = '', order = ''] = node.inputs
  if (order !== '') return undefined
  if (name === '') return null
  const zeros = find(name)
  if (zeros === undefined) return undefined
  return zeros.type === 'u8' ? read(zeros) : asFloats(read(zeros))
}

/** Rows (outputs), columns (inputs), bits and block size of a quantised product; else null. */
export function blockShape(node: GraphNode): BlockShape | null {
  if (node.op !== 'MatMulNBits' && node.op !== 'MatMulBnb4') return null
  const { K, N, bits, block_size: block, transB } = node.attributes
  if (transB && number(transB) !== 1) return null
  return {
    rows: number(N),
    columns: number(K),
    bits: node.op === 'MatMulBnb4' || !bits ? 4 : number(bits),
    blockSize: number(block),
  }
}

function number(attribute: Attribute | undefined): number {
  return attribute?.kind === 'int' ? attribute.value : 0
}
