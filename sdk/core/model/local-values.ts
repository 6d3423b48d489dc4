import {
  int,
  type Attribute,
  type Graph,
  type GraphNode,
  type Initializer,
} from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import type { TensorType } from '../tensor/dtype.ts'
import { longs, operation } from './onnx/constant-value.ts'

/**
 * What a block makes by itself from `total_sequence_length` and the shape of `hidden`, where exporters
 * have inputs of the whole graph: names inside the block.
 */
export const LOCAL = {
  /** i64 [1, S]; only its shape means anything. */
  ids: 'local.ids',
  /** [1, S]: total - S and on. */
  positions: 'local.positions',
  /** [1, total] of ones. */
  mask: 'local.mask',
  /** [1, KV, total - S, D]: the true rows of a cache buffer, which is longer. */
  pastKey: 'local.past.key',
  pastValue: 'local.past.value',
  /** A zero: all rows of logits are wanted. */
  allLogits: 'local.all_logits',
} as const

export type LocalTypes = { readonly positions: TensorType; readonly mask: TensorType }

/** The nodes and constants that make the local values, of which those that nobody reads are to be pruned. */
export function localValues(
  types: LocalTypes,
  layer: boolean,
): Pick<Graph, 'nodes' | 'initializers'> {
  const initializers: Initializer[] = [
    longs('local.zero', [1], [0]),
    longs('local.one', [1], [1]),
    longs('local.two', [1], [2]),
    longs('local.step', [], [1]),
    longs('local.row', [2], [1, -1]),
    longs(LOCAL.allLogits, [], [0]),
  ]
  const nodes: GraphNode[] = [
    operation('Shape', ['hidden'], 'local.shape'),
    operation('Gather', ['local.shape', 'local.one'], 'local.tokens'),
    operation('Concat', ['local.one', 'local.tokens'], 'local.ids_shape', { axis: int(0) }),
    operation('ConstantOfShape', ['local.ids_shape'], LOCAL.ids, { value: fill(0) }),
  ]
  if (!layer) return { nodes, initializers }
  const cast = (from: string, to: string, type: TensorType): GraphNode =>
    operation('Cast', [from], to, { to: int(TYPE_CODES[type]) })
  nodes.push(
    cast('total_sequence_length', 'local.total', 'i64'),
    operation('Reshape', ['local.total', 'local.one'], 'local.end'),
    operation('Sub', ['local.end', 'local.tokens'], 'local.start'),
    operation('Gather', ['local.shape', 'local.step'], 'local.count'),
    operation('Sub', ['local.total', 'local.count'], 'local.first'),
    operation('Range', ['local.first', 'local.total', 'local.step'], 'local.range'),
    operation('Reshape', ['local.range', 'local.row'], 'local.positions64'),
    cast('local.positions64', LOCAL.positions, types.positions),
    operation('Concat', ['local.one', 'local.end'], 'local.mask_shape', { axis: int(0) }),
    operation('ConstantOfShape', ['local.mask_shape'], 'local.mask64', { value: fill(1) }),
    cast('local.mask64', LOCAL.mask, types.mask),
  )
  for (const [from, to] of [
    ['past.key', LOCAL.pastKey],
    ['past.value', LOCAL.pastValue],
  ] as const) {
    nodes.push(operation('Slice', [from, 'local.zero', 'local.start', 'local.two'], to))
  }
  return { nodes, initializers }
}

function fill(value: number): Attribute {
  return { kind: 'tensor', value: longs('', [1], [value]) }
}
