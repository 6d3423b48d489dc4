import {
  int,
  type Attribute,
  type Graph,
  type GraphNode,
  type Initializer,
} from '../graph/graph.ts'
import { dequantizeQ4, Q4_BLOCK } from '../tensor/quantize-q4.ts'
import { dequantizeQ8 } from '../tensor/quantize-q8.ts'
import { asBytes, asFloats } from '../tensor/views.ts'
import type { ReadConstant } from './fold-constants.ts'
import { MICROSOFT } from './graph-builder.ts'

/**
 * Replaces 4-bit matrix products by f32 ones. WASM has no 4-bit kernel: it would dequantise the whole matrix
 * in every call, ten times slower than f32. `wanted` selects by node.
 */
export function expandQ4(
  graph: Graph,
  read: ReadConstant,
  wanted: (node: GraphNode) => boolean,
): Graph {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const made: Initializer[] = []
  const nodes = graph.nodes.map((node): GraphNode => {
    if (node.op !== 'MatMulNBits' || !wanted(node)) return node
    const [input = '', packedName = '', scalesName = ''] = node.inputs
    const packed = constants.get(packedName)
    const scales = constants.get(scalesName)
    const shape = q4Shape(node)
    if (!packed || !scales || !shape) return node
    const { rows, columns, bits } = shape
    const dequantize = bits === 8 ? dequantizeQ8 : dequantizeQ4
    const values = dequantize(read(packed), asFloats(read(scales)), rows, columns)
    const name = `${packedName}.f32`
    made.push({
      name,
      type: 'f32',
      dims: [rows, columns],
      data: { kind: 'inline', bytes: asBytes(values) },
    })
    return {
      name: node.name,
      op: 'FusedMatMul',
      domain: MICROSOFT,
      inputs: [input, name],
      outputs: node.outputs,
      attributes: { transB: int(1) },
    }
  })
  return { ...graph, nodes, initializers: [...graph.initializers, ...made] }
}

/** Rows (outputs) and columns (inputs) of a 4- or 8-bit product in blocks of 32, symmetric; else null. */
export function q4Shape(node: GraphNode): { rows: number; columns: number; bits: number } | null {
  const number = (attribute: Attribute | undefined): number =>
    attribute?.kind === 'int' ? attribute.value : 0
  const { K, N, bits, block_size: block } = node.attributes
  const isKnown = number(bits) === 4 || number(bits) === 8
  const plain = node.inputs.length === 3 && isKnown && number(block) === Q4_BLOCK
  return plain ? { rows: number(N), columns: number(K), bits: number(bits) } : null
}
