import { int, type Attribute, type Graph, type GraphNode } from '../../graph/graph.ts'
import { TYPE_CODES } from '../../graph/onnx-format.ts'
import type { TensorType } from '../../tensor/dtype.ts'
import { bfloatsToFloats, halvesToFloats } from '../../tensor/float16.ts'
import { asBytes, asHalves } from '../../tensor/views.ts'
import { intOf, operation } from './constant-value.ts'
import { valueTypes } from './value-types.ts'

/**
 * The same graph computing in f32, so that it runs on every provider and borders cost no precision. Half
 * weights stay as they are stored, behind a Cast that is folded when a block is loaded.
 */
export function widenHalves(graph: Graph): Graph {
  const halves = new Set(
    graph.initializers.filter(({ type }) => isHalf(type)).map(({ name }) => name),
  )
  const widened = new Set<string>()
  const nodes = graph.nodes.flatMap((node): GraphNode[] => {
    const wide = { ...node, attributes: wideAttributes(node) }
    const [data = ''] = node.inputs
    // A lookup takes rows out of the table as it is stored.
    if (node.op === 'Gather' && halves.has(data)) return widenAfter(wide)
    const added: GraphNode[] = []
    const inputs = node.inputs.map((input) => {
      if (!halves.has(input)) return input
      if (!widened.has(input)) added.push(toFloat(input, wideName(input)))
      widened.add(input)
      return wideName(input)
    })
    return [...added, { ...wide, inputs }]
  })
  const wide = {
    ...graph,
    nodes,
    inputs: graph.inputs.map((input) => ({ ...input, type: wideType(input.type) })),
    outputs: graph.outputs.map((output) => ({ ...output, type: wideType(output.type) })),
  }
  return withoutIdleCasts(wide)
}

function isHalf(type: TensorType): boolean {
  return type === 'f16' || type === 'bf16'
}

function wideType(type: TensorType): TensorType {
  return isHalf(type) ? 'f32' : type
}

function wideName(name: string): string {
  return `${name}/f32`
}

function toFloat(input: string, output: string): GraphNode {
  return operation('Cast', [input], output, { to: int(TYPE_CODES.f32) })
}

function widenAfter(node: GraphNode): GraphNode[] {
  const [output = ''] = node.outputs
  const half = `${output}/half`
  return [{ ...node, outputs: [half] }, toFloat(half, output)]
}

function wideAttributes(node: GraphNode): GraphNode['attributes'] {
  const { attributes } = node
  if (node.op === 'Cast') {
    const to = intOf(attributes['to'], 0)
    const isToHalf = to === TYPE_CODES.f16 || to === TYPE_CODES.bf16
    return isToHalf ? { ...attributes, to: int(TYPE_CODES.f32) } : attributes
  }
  const value = attributes['value']
  if (node.op !== 'ConstantOfShape' || value?.kind !== 'tensor') return attributes
  return { ...attributes, value: wideConstant(value) }
}

function wideConstant(attribute: Extract<Attribute, { kind: 'tensor' }>): Attribute {
  const { type, data } = attribute.value
  if (!isHalf(type) || data.kind !== 'inline') return attribute
  const widen = type === 'f16' ? halvesToFloats : bfloatsToFloats
  const bytes = asBytes(widen(asHalves(data.bytes)))
  return {
    kind: 'tensor',
    value: { ...attribute.value, type: 'f32', data: { kind: 'inline', bytes } },
  }
}

/** Casts to the type that a value has already would stand between a residual sum and the border. */
function withoutIdleCasts(graph: Graph): Graph {
  const types = valueTypes(graph)
  const outputs = new Set(graph.outputs.map((output) => output.name))
  const aliases = new Map<string, string>()
  const nodes: GraphNode[] = []
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((input) => aliases.get(input) ?? input)
    const [input = ''] = inputs
    const [output = ''] = node.outputs
    const isIdle = node.op === 'Cast' && types.get(input) === types.get(output)
    if (isIdle && !outputs.has(output)) aliases.set(output, input)
    else nodes.push({ ...node, inputs })
  }
  return { ...graph, nodes }
}
