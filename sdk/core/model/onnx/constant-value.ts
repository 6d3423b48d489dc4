import { type Attribute, type GraphNode, type Initializer } from '../../graph/graph.ts'
import { asBytes } from '../../tensor/views.ts'

/** A small i64 constant inside the graph. */
export function longs(
  name: string,
  dims: readonly number[],
  values: readonly number[],
): Initializer {
  const bytes = asBytes(BigInt64Array.from(values, BigInt))
  return { name, type: 'i64', dims, data: { kind: 'inline', bytes } }
}

/** The values of an inline i64 constant, or null. */
export function longsOf(initializer: Initializer | undefined): number[] | null {
  if (initializer?.type !== 'i64' || initializer.data.kind !== 'inline') return null
  const { bytes } = initializer.data
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: bytes.length / 8 }, (_, i) => Number(view.getBigInt64(8 * i, true)))
}

/** The value of a whole-number attribute. */
export function intOf(attribute: Attribute | undefined, fallback: number): number {
  return attribute?.kind === 'int' ? attribute.value : fallback
}

/** A node of ONNX's own operators with one output, which names it. */
export function operation(
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: GraphNode['attributes'] = {},
): GraphNode {
  return { name: output, op, domain: '', inputs, outputs: [output], attributes }
}
