import { float, int, type Graph, type GraphNode, type Initializer } from '../../graph/graph.ts'
import { intOf, longs, operation } from './constant-value.ts'

/** Inputs of GroupQueryAttention. */
const QUERY_NORM = 14
const KEY_NORM = 15

/**
 * Takes the norms of queries and keys out of the attention nodes: graphs built for GPUs have them as
 * inputs 14 and 15, which the CPU refuses at run time.
 */
export function unfuseQkNorms(graph: Graph, headSize: number): Graph {
  const constants: Initializer[] = []
  const nodes = graph.nodes.flatMap((node) => {
    const isFused = node.op === 'GroupQueryAttention' && Boolean(node.inputs[QUERY_NORM])
    return isFused ? unfuse(node, headSize, constants) : [node]
  })
  return { ...graph, nodes, initializers: [...graph.initializers, ...constants] }
}

function unfuse(node: GraphNode, headSize: number, constants: Initializer[]): GraphNode[] {
  const name = node.name || (node.outputs[0] ?? '')
  const { qk_norm_epsilon: epsilon = float(1e-6), ...attributes } = node.attributes
  const heads = intOf(attributes['num_heads'], 1)
  const kvHeads = intOf(attributes['kv_num_heads'], heads)
  const constant = (part: string, values: readonly number[]): string => {
    const made = longs(`${name}/${part}`, [values.length], values)
    constants.push(made)
    return made.name
  }
  const nodes: GraphNode[] = []
  const split = (packed: string): string[] => {
    const sizes = constant(
      'widths',
      [heads, kvHeads, kvHeads].map((count) => count * headSize),
    )
    const outputs = ['query', 'key', 'value'].map((part) => `${name}/${part}`)
    const attributesOfSplit = { axis: int(-1) }
    nodes.push({
      ...operation('Split', [packed, sizes], `${name}/split`, attributesOfSplit),
      outputs,
    })
    return outputs
  }
  const [packed = '', separateKey = ''] = node.inputs
  const [query = '', key = '', value = ''] =
    separateKey === '' ? split(packed) : node.inputs.slice(0, 3)
  const norm = (part: string, input: string, weight: string, count: number): string => {
    const apart = `${name}/${part}/heads`
    const normed = `${name}/${part}/normed`
    const joined = `${name}/${part}/joined`
    nodes.push(
      operation('Reshape', [input, constant(`${part}/apart`, [0, 0, count, headSize])], apart),
      operation('SimplifiedLayerNormalization', [apart, weight], normed, {
        axis: int(-1),
        epsilon,
        stash_type: int(1),
      }),
      operation(
        'Reshape',
        [normed, constant(`${part}/together`, [0, 0, count * headSize])],
        joined,
      ),
    )
    return joined
  }
  const inputs = [
    norm('q_norm', query, node.inputs[QUERY_NORM] ?? '', heads),
    norm('k_norm', key, node.inputs[KEY_NORM] ?? '', kvHeads),
    value,
    ...node.inputs.slice(3, QUERY_NORM),
  ]
  return [...nodes, { ...node, inputs, attributes }]
}
