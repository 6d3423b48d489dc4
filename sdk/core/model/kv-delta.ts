import {
  int,
  type Graph,
  type GraphNode,
  type Initializer,
  type ValueInfo,
} from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import { asBytes } from '../tensor/views.ts'

/**
 * Lets a layer return only the rows of keys and values that are new, instead of the whole cache: on a CPU
 * every output is copied, so a token would cost as much as the cache is long.
 * The new rows are [total - S, total) of `present`, S = tokens in `hidden`.
 */
export function returnNewRows(graph: Graph): Graph {
  const added: GraphNode[] = [
    operation('Shape', ['hidden'], 'delta.shape'),
    operation('Gather', ['delta.shape', 'delta.one'], 'delta.tokens'),
    operation('Cast', ['total_sequence_length'], 'delta.total', { to: int(TYPE_CODES.i64) }),
    operation('Reshape', ['delta.total', 'delta.one'], 'delta.end'),
    operation('Sub', ['delta.end', 'delta.tokens'], 'delta.start'),
  ]
  const outputs = graph.outputs.map((output): ValueInfo => {
    const part = /^present\.(key|value)$/.exec(output.name)?.[1]
    if (part === undefined) return output
    const inputs = [output.name, 'delta.start', 'delta.end', 'delta.axis']
    added.push(operation('Slice', inputs, `new.${part}`))
    const [batch = 1, heads = 'heads', , size = 'size'] = output.dims
    return { ...output, name: `new.${part}`, dims: [batch, heads, 'tokens', size] }
  })
  return {
    ...graph,
    outputs,
    nodes: [...graph.nodes, ...added],
    initializers: [...graph.initializers, index('delta.one', 1n), index('delta.axis', 2n)],
  }
}

function operation(
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: GraphNode['attributes'] = {},
): GraphNode {
  return { name: output, op, domain: '', inputs, outputs: [output], attributes }
}

function index(name: string, value: bigint): Initializer {
  const bytes = asBytes(BigInt64Array.of(value))
  return { name, type: 'i64', dims: [1], data: { kind: 'inline', bytes } }
}
