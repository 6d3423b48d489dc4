import { int, ints, type Graph, type GraphNode, type Initializer } from '../../graph/graph.ts'
import { OPSET_VERSION, TYPE_CODES } from '../../graph/onnx-format.ts'
import { asBytes } from '../../tensor/views.ts'
import { longs, operation } from './constant-value.ts'

/** From this version of ONNX's operators on ReduceMax takes its axes as an input. */
const AXES_AS_INPUT = 18
const LARGEST = 255

/**
 * Gives each row of activations a scale of its own. DynamicQuantizeLinear takes one for all rows that are computed
 * together, so that what a token gets would hang on how a prompt is cut into chunks, and on what is computed again
 * after a device was lost. A row gets what the exporter's own graph gives it alone.
 *
 * With q and z of a row, MatMulInteger being able to take no z per row: Σ (q − z)(w − w₀) = Σ q(w − w₀) − z·Σ (w − w₀).
 */
export function quantizeRows(graph: Graph): Graph {
  const scales = new Map<string, RowScale>()
  const constants = new Map<string, Initializer>()
  const dims = new Map(graph.initializers.map((each) => [each.name, each.dims]))
  const opset = graph.opset ?? OPSET_VERSION
  const constant = (made: Initializer): string => {
    constants.set(made.name, made)
    return made.name
  }
  const nodes = graph.nodes.flatMap((node) => {
    if (node.op === 'DynamicQuantizeLinear') {
      const { nodes: made, scale } = quantize(node, { opset, constant })
      scales.set(scale.quantized, scale)
      return made
    }
    const scale = scales.get(node.inputs[0] ?? '')
    if (node.op !== 'MatMulInteger' || scale === undefined) return [node]
    const [rows = 0] = dims.get(node.inputs[1] ?? '') ?? []
    return multiply(node, scale, constant(bytes(`rows/ones/${rows}`, rows)))
  })
  return { ...graph, nodes, initializers: [...graph.initializers, ...constants.values()] }
}

type RowScale = {
  readonly quantized: string
  /** i32, a column. */
  readonly zeroPoint: string
}

type Making = {
  readonly opset: number
  /** Adds a constant to the graph, once; gives its name. */
  constant(made: Initializer): string
}

/** As ONNX defines DynamicQuantizeLinear, with the range of each row in place of that of the tensor. */
function quantize(
  { inputs, outputs }: GraphNode,
  { opset, constant }: Making,
): { readonly nodes: GraphNode[]; readonly scale: RowScale } {
  const [x = ''] = inputs
  const [quantized = '', scale = ''] = outputs
  const nodes: GraphNode[] = []
  const add = (op: string, from: readonly string[], part: string, to?: GraphNode['attributes']) => {
    nodes.push(operation(op, from, part, to))
    return part
  }
  const part = (name: string): string => `${quantized}/${name}`
  const zero = constant(number('rows/zero', 0))
  const one = constant(number('rows/one', 1))
  const largest = constant(number('rows/largest', LARGEST))
  const highest = (from: string, name: string): string =>
    opset < AXES_AS_INPUT
      ? add('ReduceMax', [from], part(name), { axes: ints(-1), keepdims: int(1) })
      : add('ReduceMax', [from, constant(longs('rows/axis', [1], [-1]))], part(name), {
          keepdims: int(1),
        })
  // The range always has the zero in it.
  const above = add('Max', [highest(x, 'highest'), zero], part('above'))
  const negated = add('Neg', [x], part('negated'))
  const below = add('Max', [highest(negated, 'lowest'), zero], part('below'))
  const range = add('Add', [above, below], part('range'))
  const isFlat = add('Equal', [range, zero], part('flat'))
  const step = add('Div', [range, largest], part('step'))
  add('Where', [isFlat, one, step], scale)
  const start = add('Div', [below, scale], part('start'))
  const clipped = add('Clip', [start, zero, largest], part('clipped'))
  const zeroPoint = add('Round', [clipped], part('zero_point'))
  const divided = add('Div', [x, scale], part('divided'))
  const rounded = add('Round', [divided], part('rounded'))
  const moved = add('Add', [rounded, zeroPoint], part('moved'))
  const bounded = add('Clip', [moved, zero, largest], part('bounded'))
  add('Cast', [bounded], quantized, { to: int(TYPE_CODES.u8) })
  const whole = add('Cast', [zeroPoint], part('zero_point/i32'), { to: int(TYPE_CODES.i32) })
  return { nodes, scale: { quantized, zeroPoint: whole } }
}

/** ONNX Runtime computes the sums of the weights' columns once, when it loads the graph: they are constant. */
function multiply(
  { inputs, outputs, attributes, name }: GraphNode,
  { quantized, zeroPoint }: RowScale,
  ones: string,
): GraphNode[] {
  const [, weights = '', , weightZero = ''] = inputs
  const [output = ''] = outputs
  const part = (what: string): string => `${output}/${what}`
  const product = (from: string, to: string): GraphNode => ({
    ...operation('MatMulInteger', [from, weights, '', weightZero], to, attributes),
    name: to === part('raw') ? name : to,
  })
  return [
    product(quantized, part('raw')),
    product(ones, part('columns')),
    operation('Mul', [zeroPoint, part('columns')], part('shift')),
    operation('Sub', [part('raw'), part('shift')], output),
  ]
}

function number(name: string, value: number): Initializer {
  return {
    name,
    type: 'f32',
    dims: [],
    data: { kind: 'inline', bytes: asBytes(Float32Array.of(value)) },
  }
}

/** Ones, as many as a column of weights has rows. */
function bytes(name: string, count: number): Initializer {
  const data = { kind: 'inline', bytes: new Uint8Array(count).fill(1) } as const
  return { name, type: 'u8', dims: [count], data }
}
