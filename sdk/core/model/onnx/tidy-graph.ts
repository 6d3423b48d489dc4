import { CrowdError } from '../../errors.ts'
import type { Graph, GraphNode, Initializer } from '../../graph/graph.ts'
import { elementCount } from '../../tensor/dtype.ts'
import { asBytes } from '../../tensor/views.ts'
import { describeNode } from '../dialect.ts'
import { intOf, longs, longsOf } from './constant-value.ts'

/**
 * The same graph with every constant as an initialiser: exporters also write them as nodes, list
 * initialisers as inputs, bridge merged ones with Identity, and reshape weights that two nodes share.
 * @throws CrowdError model-unsupported for a constant of another kind (node named)
 */
export function tidyGraph(graph: Graph): Graph {
  const constants = new Map(graph.initializers.map((entry) => [entry.name, entry]))
  const aliases = new Map<string, string>()
  const outputs = new Set(graph.outputs.map((output) => output.name))
  const nodes: GraphNode[] = []
  for (const original of graph.nodes) {
    const node = {
      ...original,
      inputs: original.inputs.map((input) => aliases.get(input) ?? input),
    }
    const [input = '', shape = ''] = node.inputs
    const [output = ''] = node.outputs
    const constant = constants.get(input)
    if (node.op === 'Constant') constants.set(output, constantOf(node, output))
    else if (node.op === 'Identity' && !outputs.has(output)) aliases.set(output, input)
    else if (node.op === 'Reshape' && constant && !outputs.has(output)) {
      const reshaped = reshape(node, constant, constants.get(shape))
      if (reshaped) constants.set(output, { ...reshaped, name: output })
      else nodes.push(node)
    } else nodes.push(node)
  }
  return {
    ...graph,
    nodes,
    inputs: graph.inputs.filter((input) => !constants.has(input.name)),
    initializers: [...constants.values()],
  }
}

function constantOf(node: GraphNode, name: string): Initializer {
  const { value, value_int: one, value_ints: list } = node.attributes
  const { value_float: float, value_floats: floats } = node.attributes
  if (value?.kind === 'tensor') return { ...value.value, name }
  if (one?.kind === 'int') return longs(name, [], [one.value])
  if (list?.kind === 'ints') return longs(name, [list.value.length], list.value)
  if (float?.kind === 'float') return floatsConstant(name, [], [float.value])
  if (floats?.kind === 'floats') return floatsConstant(name, [floats.value.length], floats.value)
  throw new CrowdError('model-unsupported', `${describeNode(node)} holds no number.`)
}

function floatsConstant(
  name: string,
  dims: readonly number[],
  values: readonly number[],
): Initializer {
  const bytes = asBytes(Float32Array.from(values))
  return { name, type: 'f32', dims, data: { kind: 'inline', bytes } }
}

/** Null where the new shape isn't a constant that fits. */
function reshape(
  node: GraphNode,
  constant: Initializer,
  shape: Initializer | undefined,
): Initializer | null {
  const wanted = longsOf(shape)
  if (wanted === null || intOf(node.attributes['allowzero'], 0) !== 0) return null
  const dims = wanted.map((dim, i) => (dim === 0 ? (constant.dims[i] ?? 0) : dim))
  const known = elementCount(dims.filter((dim) => dim !== -1))
  const all = elementCount(constant.dims)
  const whole = dims.map((dim) => (dim === -1 ? all / known : dim))
  return elementCount(whole) === all ? { ...constant, dims: whole } : null
}
