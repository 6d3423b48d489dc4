import { describe, expect, it } from 'vitest'
import { int, ints, type Graph, type GraphNode, type Initializer } from '../../graph/graph.ts'
import { bytesPerElement } from '../../tensor/dtype.ts'
import { asBytes } from '../../tensor/views.ts'
import { canonicalise } from './canonicalise.ts'
import { longs } from './constant-value.ts'

function weight(name: string, type: Initializer['type'], dims: number[]): Initializer {
  const size = bytesPerElement(type)
  const length = size * dims.reduce((product, dim) => product * dim, 1)
  return { name, type, dims, data: { kind: 'external', location: 'w', offset: 0, length } }
}

function node(
  op: string,
  inputs: string[],
  outputs: string[],
  more: Partial<GraphNode> = {},
): GraphNode {
  return { name: `the ${op}`, op, domain: '', inputs, outputs, attributes: {}, ...more }
}

function graphOf(
  nodes: GraphNode[],
  initializers: Initializer[],
  more: Partial<Graph> = {},
): Graph {
  return {
    name: 'test',
    inputs: [{ name: 'input_ids', type: 'i64', dims: [1, 'S'] }],
    outputs: [{ name: 'logits', type: 'f32', dims: [1, 'S', 8] }],
    nodes,
    initializers,
    ...more,
  }
}

const shapeOf = ({ nodes }: Graph): string[] =>
  nodes.map(({ op, inputs, outputs }) => `${op}(${inputs.join(' ')}) ${outputs.join(' ')}`)

describe('canonicalise', () => {
  it('makes constants of constant nodes, follows Identity, and reshapes shared weights', () => {
    const value = { kind: 'tensor', value: longs('', [2], [8, -1]) } as const
    const { graph } = canonicalise(
      graphOf(
        [
          node('Constant', [], ['shape'], { attributes: { value } }),
          node('Identity', ['packed'], ['same']),
          node('Reshape', ['same', 'shape'], ['table']),
          node('Gather', ['table', 'input_ids'], ['rows']),
          node('Relu', ['rows'], ['logits']),
        ],
        [weight('packed', 'f32', [8, 2, 2])],
        { inputs: [{ name: 'packed', type: 'f32', dims: [8, 2, 2] }] },
      ),
      16,
    )
    expect(shapeOf(graph)).toEqual(['Gather(table input_ids) rows', 'Relu(rows) logits'])
    expect(graph.inputs).toEqual([])
    const table = graph.initializers.find(({ name }) => name === 'table')
    expect(table).toMatchObject({ dims: [8, 4], data: { kind: 'external', location: 'w' } })
  })

  it('turns a tied matrix for the lookup, and tells the product with it so', () => {
    const { graph, transposed } = canonicalise(
      graphOf(
        [
          node('Transpose', ['head'], ['table'], { attributes: { perm: ints(1, 0) } }),
          node('Gather', ['table', 'input_ids'], ['rows']),
          node('MatMul', ['rows', 'head'], ['logits']),
        ],
        [weight('head', 'f32', [4, 8])],
      ),
      16,
    )
    expect(shapeOf(graph)).toEqual([
      'Gather(table input_ids) rows',
      'FusedMatMul(rows table) logits',
    ])
    expect([...transposed]).toEqual(['table'])
    expect(graph.initializers.find(({ name }) => name === 'table')?.dims).toEqual([8, 4])
  })

  it('joins a product with the transpose of its matrix', () => {
    const { graph, transposed } = canonicalise(
      graphOf(
        [
          node('Gather', ['table', 'input_ids'], ['rows']),
          node('Transpose', ['table'], ['head'], { attributes: { perm: ints(1, 0) } }),
          node('MatMul', ['rows', 'head'], ['logits']),
        ],
        [weight('table', 'f32', [8, 4])],
      ),
      16,
    )
    expect(shapeOf(graph)).toContain('FusedMatMul(rows table) logits')
    expect([...transposed]).toEqual([])
  })

  it('computes in f32 where the file has halves, and keeps the weights as they are stored', () => {
    const half = asBytes(Uint16Array.of(0x3e00))
    const { graph } = canonicalise(
      graphOf(
        [
          node('Gather', ['table', 'input_ids'], ['rows']),
          node('Cast', ['rows'], ['wide'], { attributes: { to: int(1) } }),
          node('Mul', ['wide', 'scale'], ['scaled']),
          node('Cast', ['scaled'], ['narrow'], { attributes: { to: int(10) } }),
          node('MatMul', ['narrow', 'matrix'], ['logits']),
        ],
        [
          weight('table', 'f16', [8, 4]),
          weight('matrix', 'f16', [4, 8]),
          { name: 'scale', type: 'f16', dims: [], data: { kind: 'inline', bytes: half } },
        ],
        { outputs: [{ name: 'logits', type: 'f16', dims: [1, 'S', 8] }] },
      ),
      16,
    )
    expect(shapeOf(graph)).toEqual([
      'Gather(table input_ids) rows/half',
      'Cast(rows/half) rows',
      'Cast(scale) scale/f32',
      'Mul(rows scale/f32) scaled',
      'Cast(matrix) matrix/f32',
      'MatMul(scaled matrix/f32) logits',
    ])
    expect(graph.outputs[0]?.type).toBe('f32')
    expect(graph.initializers.map(({ type }) => type)).toEqual(['f16', 'f16', 'f16'])
  })

  it('takes the norms of queries and keys out of the attention', () => {
    const attention = node(
      'GroupQueryAttention',
      ['qkv', '', '', 'k', 'v', 's', 't', 'c', 'd', '', '', '', '', '', 'qn', 'kn'],
      ['logits'],
      {
        attributes: {
          num_heads: int(4),
          kv_num_heads: int(2),
          qk_norm_epsilon: { kind: 'float', value: 0.5 },
        },
      },
    )
    const { graph } = canonicalise(
      graphOf([attention], [weight('qn', 'f32', [16]), weight('kn', 'f32', [16])]),
      16,
    )
    expect(graph.nodes.map(({ op }) => op)).toEqual([
      'Split',
      ...['Reshape', 'SimplifiedLayerNormalization', 'Reshape'],
      ...['Reshape', 'SimplifiedLayerNormalization', 'Reshape'],
      'GroupQueryAttention',
    ])
    const last = graph.nodes.at(-1)!
    expect(last.inputs.length).toBe(14)
    expect(last.inputs.slice(3, 9)).toEqual(['k', 'v', 's', 't', 'c', 'd'])
    expect(last.attributes['qk_norm_epsilon']).toBeUndefined()
    const norms = graph.nodes.filter(({ op }) => op === 'SimplifiedLayerNormalization')
    expect(norms.map(({ inputs }) => inputs[1])).toEqual(['qn', 'kn'])
    for (const norm of norms) expect(norm.attributes['epsilon']).toMatchObject({ value: 0.5 })
    const widths = graph.initializers.find(({ name }) => name.endsWith('/widths'))
    expect(widths).toMatchObject(longs('the GroupQueryAttention/widths', [3], [64, 32, 32]))
  })

  it('joins a lookup of bytes with its scale', () => {
    const bytes = (values: Uint8Array<ArrayBuffer>): Initializer['data'] => ({
      kind: 'inline',
      bytes: values,
    })
    const { graph, shifted } = canonicalise(
      graphOf(
        [
          node('Gather', ['table', 'input_ids'], ['rows']),
          node('DequantizeLinear', ['rows', 'scale', 'zero'], ['hidden']),
          node('Relu', ['hidden'], ['logits']),
        ],
        [
          weight('table', 'i8', [8, 32]),
          { name: 'scale', type: 'f32', dims: [], data: bytes(asBytes(Float32Array.of(0.25))) },
          { name: 'zero', type: 'i8', dims: [], data: bytes(Uint8Array.of(255)) },
        ],
      ),
      16,
    )
    expect(shapeOf(graph)).toEqual([
      'GatherBlockQuantized(table/bytes input_ids table/scales table/zeros) hidden',
      'Relu(hidden) logits',
    ])
    expect([...shifted]).toEqual(['table/bytes'])
    const zeros = graph.initializers.find(({ name }) => name === 'table/zeros')
    // -1 as a signed byte is 127 once 128 is added.
    expect(zeros?.data).toEqual({ kind: 'inline', bytes: new Uint8Array(8).fill(127) })
  })
})
