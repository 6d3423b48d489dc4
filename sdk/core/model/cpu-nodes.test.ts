import { describe, expect, it } from 'vitest'
import { float, int, type Attribute, type Graph, type GraphNode } from '../graph/graph.ts'
import { isUncappedOnGpu, nameCpuNodes } from './cpu-nodes.ts'

function node(
  op: string,
  inputs: readonly string[],
  output: string,
  attributes: Record<string, Attribute> = {},
): GraphNode {
  // Exporters leave names out, or use one twice.
  return { name: 'same', op, domain: '', inputs, outputs: [output], attributes }
}

function opsOnCpu(nodes: readonly GraphNode[]): string[] {
  const graph: Graph = { name: '', nodes, initializers: [], inputs: [], outputs: [] }
  const { graph: named, names } = nameCpuNodes(graph)
  expect(new Set(names).size).toBe(names.length)
  return named.nodes.filter(({ name }) => names.includes(name)).map(({ op }) => op)
}

describe('nodes that WebGPU is not trusted with', () => {
  it('are attention with a soft cap or sinks, and no other', () => {
    const attention = (attributes: Record<string, Attribute>, sink = ''): GraphNode =>
      node('GroupQueryAttention', [...new Array<string>(11).fill('x'), sink], 'y', attributes)
    expect(isUncappedOnGpu(attention({}))).toBe(false)
    expect(isUncappedOnGpu(attention({ softcap: float(0), smooth_softmax: int(0) }))).toBe(false)
    expect(isUncappedOnGpu(attention({ softcap: float(50) }))).toBe(true)
    expect(isUncappedOnGpu(attention({ smooth_softmax: int(1) }))).toBe(true)
    expect(isUncappedOnGpu(attention({}, 'sinks'))).toBe(true)
    expect(opsOnCpu([attention({ softcap: float(50) }), node('MatMul', ['y'], 'z')])).toEqual([
      'GroupQueryAttention',
    ])
  })

  it('are quantised mixtures', () => {
    expect(opsOnCpu([node('QMoE', ['x'], 'y'), node('Add', ['y'], 'z')])).toEqual(['QMoE'])
  })

  it('are cosines and sines with what they are made of, up to shapes', () => {
    const nodes = [
      node('Mul', ['hidden'], 'scaled'),
      node('Shape', ['scaled'], 'shape'),
      node('Range', ['shape', 'total'], 'positions'),
      node('MatMul', ['frequencies', 'positions'], 'angles'),
      node('Cos', ['angles'], 'cos'),
      node('Sin', ['angles'], 'sin'),
      node('Mul', ['scaled', 'cos'], 'rotated'),
      node('Add', ['rotated', 'sin'], 'sum'),
    ]
    expect(opsOnCpu(nodes)).toEqual(['Range', 'MatMul', 'Cos', 'Sin'])
  })
})
