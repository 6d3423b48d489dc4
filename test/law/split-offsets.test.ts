import * as ort from 'onnxruntime-node'
import { describe, expect, it } from 'vitest'
import { int, pruned, type Graph, type Initializer } from '../../sdk/core/graph/graph.ts'
import { writeOnnx } from '../../sdk/core/graph/onnx-writer.ts'
import { MICROSOFT } from '../../sdk/core/model/graph-builder.ts'
import { splitOffsets } from '../../sdk/core/model/split-offsets.ts'
import { quantizeQ4 } from '../../sdk/core/tensor/quantize-q4.ts'
import { asBytes } from '../../sdk/core/tensor/views.ts'
import { floatsOf, worstDifference } from '../support/chained-blocks.ts'
import { randomFloats } from '../support/models.ts'

const ROWS = 24

/** Two products of the same activations; with f32 activations, so that nothing is rounded beside the weights. */
function products(columns: number, shift: number): Graph {
  const names = ['first', 'second']
  const initializers = names.flatMap((name, i): Initializer[] => {
    const values = randomFloats(ROWS * columns, i + 1).map((value) => value + shift)
    const { packed, scales, zeros } = quantizeQ4(values, ROWS, columns)
    const blocks = scales.length / ROWS
    const inline = (view: ArrayBufferView<ArrayBuffer>): Initializer['data'] => ({
      kind: 'inline',
      bytes: asBytes(view),
    })
    return [
      { name: `${name}.packed`, type: 'u8', dims: [ROWS, blocks, 16], data: inline(packed) },
      { name: `${name}.scales`, type: 'f32', dims: [ROWS * blocks], data: inline(scales) },
      { name: `${name}.zeros`, type: 'f32', dims: [ROWS * blocks], data: inline(zeros) },
    ]
  })
  return {
    name: 'products',
    inputs: [{ name: 'x', type: 'f32', dims: [1, 'tokens', columns] }],
    outputs: names.map((name) => ({ name, type: 'f32', dims: [1, 'tokens', ROWS] })),
    initializers,
    nodes: names.map((name) => ({
      name: `/${name}`,
      op: 'MatMulNBits',
      domain: MICROSOFT,
      inputs: ['x', `${name}.packed`, `${name}.scales`, `${name}.zeros`],
      outputs: [name],
      attributes: { K: int(columns), N: int(ROWS), bits: int(4), block_size: int(32) },
    })),
  }
}

function split(graph: Graph): Graph {
  return pruned(
    splitOffsets(graph, ({ data }) => (data.kind === 'inline' ? data.bytes : new Uint8Array())),
  )
}

async function run(graph: Graph, tokens: number, columns: number): Promise<Float32Array[]> {
  const session = await ort.InferenceSession.create(writeOnnx(graph))
  const x = new ort.Tensor('float32', randomFloats(tokens * columns, 9), [1, tokens, columns])
  const outputs = await session.run({ x })
  await session.release()
  return [floatsOf(outputs['first']), floatsOf(outputs['second'])]
}

describe('splitting offsets off 4-bit products', () => {
  it.each([
    [64, 1],
    [96, 7],
    [88, 3],
    [20, 2],
  ])('gives what ONNX Runtime makes of f32 zero points: %s columns', async (columns, tokens) => {
    const graph = products(columns, 0.4)
    const parted = split(graph)
    const want = await run(graph, tokens, columns)
    expect(worstDifference(await run(parted, tokens, columns), want)).toBeLessThan(1e-4)
    expect(parted.nodes.filter(({ op }) => op === 'ReduceSum').length).toBe(1)
    expect(
      parted.nodes.every(({ op, inputs }) => op !== 'MatMulNBits' || inputs.length === 3),
    ).toBe(true)
  })

  it('adds nothing where all steps lie round zero', () => {
    const graph = products(64, 0)
    const zeros = graph.initializers.find(({ name }) => name === 'first.zeros')!
    const bytes = asBytes(new Float32Array(ROWS * 2).fill(8))
    const initializers = [
      ...graph.initializers.filter((entry) => entry !== zeros),
      { ...zeros, data: { kind: 'inline', bytes } } as const,
    ]
    const [first] = split({ ...graph, initializers }).nodes
    expect(first).toMatchObject({ op: 'MatMulNBits', outputs: ['first'] })
  })

  it('refuses zero points that fit no scales', () => {
    const graph = products(64, 0)
    const initializers = graph.initializers.map((entry): Initializer =>
      entry.name === 'first.zeros'
        ? { ...entry, data: { kind: 'inline', bytes: new Uint8Array(8) } }
        : entry,
    )
    expect(() => split({ ...graph, initializers })).toThrow(/zero point for each scale/)
  })
})
