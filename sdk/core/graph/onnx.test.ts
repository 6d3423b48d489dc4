import { describe, expect, it } from 'vitest'
import { CrowdError } from '../errors.ts'
import { float, int, ints, pruned, type Graph } from './graph.ts'
import { readOnnx } from './onnx-reader.ts'
import { writeOnnx } from './onnx-writer.ts'
import { createProtobufWriter } from './protobuf-writer.ts'

const GRAPH: Graph = {
  name: 'everything',
  inputs: [{ name: 'x', type: 'f32', dims: [1, 'tokens', 4] }],
  outputs: [{ name: 'y', type: 'i64', dims: [] }],
  initializers: [
    {
      name: 'small',
      type: 'i32',
      dims: [2],
      data: { kind: 'inline', bytes: new Uint8Array([1, 0, 0, 0, 255, 255, 255, 255]) },
    },
    {
      name: 'large',
      type: 'f16',
      dims: [1000, 3],
      data: { kind: 'external', location: 'data', offset: 2 ** 40, length: 6000 },
    },
  ],
  nodes: [
    {
      name: 'first',
      op: 'Thing',
      domain: 'com.microsoft',
      inputs: ['x', '', 'small'],
      outputs: ['a', '', 'b'],
      attributes: {
        whole: int(-3),
        big: int(2 ** 40),
        part: float(0.5),
        list: ints(1, -1, 300),
        floats: { kind: 'floats', value: [1.5, -2] },
        word: { kind: 'string', value: 'Grüße' },
        words: { kind: 'strings', value: ['a', ''] },
        tensor: {
          kind: 'tensor',
          value: {
            name: 't',
            type: 'u8',
            dims: [],
            data: { kind: 'inline', bytes: new Uint8Array([7]) },
          },
        },
      },
    },
    { name: '', op: 'Last', domain: '', inputs: ['a', 'large'], outputs: ['y'], attributes: {} },
  ],
}

function codeOf(run: () => unknown): string | null {
  try {
    run()
    return null
  } catch (error) {
    return error instanceof CrowdError ? error.code : 'other'
  }
}

describe('ONNX', () => {
  it('reads back what it wrote', () => {
    expect(readOnnx(writeOnnx(GRAPH))).toEqual(GRAPH)
  })

  it('refuses every truncation with model-invalid or reads a shorter but valid model', () => {
    const bytes = writeOnnx(GRAPH)
    for (let length = 0; length < bytes.length; length++) {
      const code = codeOf(() => readOnnx(bytes.subarray(0, length)))
      // The opsets come last, so the graph may be whole before the file is.
      if (code !== null) expect(code).toBe('model-invalid')
      else expect(length).toBeGreaterThan(bytes.length - 30)
    }
  })

  it('survives every single damaged byte without any other kind of error', () => {
    const bytes = writeOnnx(GRAPH)
    for (let at = 0; at < bytes.length; at++) {
      const damaged = bytes.slice()
      damaged[at]! ^= 0x95
      expect(codeOf(() => readOnnx(damaged))).toBeOneOf([
        null,
        'model-invalid',
        'model-unsupported',
      ])
    }
  })

  it('refuses a tensor whose data does not fit its shape, by name', () => {
    const [small] = GRAPH.initializers
    const wrong = { ...GRAPH, initializers: [{ ...small!, dims: [3] }] }
    expect(() => readOnnx(writeOnnx(wrong))).toThrow('The tensor small has 8 bytes, not 12.')
  })

  it('refuses a subgraph by the name of its node', () => {
    const model = createProtobufWriter()
    model.message(7, (graph) =>
      graph.message(1, (node) => {
        node.string(3, 'branch')
        node.string(4, 'If')
        node.message(5, (attribute) => {
          attribute.string(1, 'then_branch')
          attribute.varint(20, 5)
        })
      }),
    )
    expect(() => readOnnx(model.finish())).toThrow(/^If \(branch\): attribute then_branch/)
  })

  it('reads packed and unpacked number lists, and typed data', () => {
    const model = createProtobufWriter()
    const floats = new Uint8Array(new Float32Array([1, 2]).buffer)
    model.message(7, (graph) => {
      graph.message(5, (tensor) => {
        tensor.bytes(1, new Uint8Array([2, 1]))
        tensor.varint(2, 1)
        tensor.string(8, 'typed')
        tensor.bytes(4, floats)
      })
      graph.message(5, (tensor) => {
        tensor.varint(1, 2)
        tensor.varint(2, 7)
        tensor.string(8, 'longs')
        tensor.varint(7, -1)
        tensor.varint(7, 5)
      })
    })
    const [typed, longs] = readOnnx(model.finish()).initializers
    expect(typed).toMatchObject({ type: 'f32', dims: [2, 1], data: { bytes: floats } })
    const want = new Uint8Array(new BigInt64Array([-1n, 5n]).buffer)
    expect(longs).toMatchObject({ type: 'i64', dims: [2], data: { bytes: want } })
  })
})

describe('pruned', () => {
  it('drops what no output needs', () => {
    const { nodes, initializers } = pruned({
      ...GRAPH,
      nodes: [
        ...GRAPH.nodes,
        { name: 'idle', op: 'Idle', domain: '', inputs: ['b'], outputs: ['c'], attributes: {} },
      ],
      initializers: [...GRAPH.initializers, { ...GRAPH.initializers[0]!, name: 'unused' }],
    })
    expect(nodes.map((node) => node.op)).toEqual(['Thing', 'Last'])
    expect(initializers.map(({ name }) => name)).toEqual(['small', 'large'])
  })
})
