import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CrowdError } from '../errors.ts'
import type { Graph, Initializer } from './graph.ts'
import { readOnnx } from './onnx-reader.ts'
import { writeOnnx } from './onnx-writer.ts'
import { createProtobufWriter } from './protobuf-writer.ts'
import { slimOnnx, type RangeReader } from './slim-onnx.ts'

function tensor(name: string, length: number): Initializer {
  const bytes = Uint8Array.from({ length }, (_, i) => i % 251)
  return { name, type: 'u8', dims: [length], data: { kind: 'inline', bytes } }
}

const GRAPH: Graph = {
  name: 'weights inside',
  inputs: [{ name: 'x', type: 'f32', dims: [1] }],
  outputs: [{ name: 'y', type: 'f32', dims: [1] }],
  initializers: [tensor('small', 100), tensor('large', 30_000), tensor('other', 5000)],
  nodes: [
    {
      name: 'constant',
      op: 'Constant',
      domain: '',
      inputs: [],
      outputs: ['c'],
      attributes: { value: { kind: 'tensor', value: tensor('', 7_000) } },
    },
    { name: 'use', op: 'Add', domain: '', inputs: ['x', 'c'], outputs: ['y'], attributes: {} },
  ],
}

function reader(file: Uint8Array): RangeReader & { readonly largest: () => number } {
  let largest = 0
  return {
    bytes: file.length,
    largest: () => largest,
    read: (offset, length) => {
      largest = Math.max(largest, length)
      if (offset + length > file.length) throw new Error(`outside: ${offset}+${length}`)
      return Promise.resolve(file.subarray(offset, offset + length))
    },
  }
}

function find(graph: Graph, name: string): Initializer | undefined {
  return graph.initializers.find((entry) => entry.name === name)
}

describe('slimOnnx', () => {
  it('leaves long data in the file, of initialisers and of constant nodes, and keeps the rest', async () => {
    const file = writeOnnx(GRAPH)
    const graph = readOnnx(await slimOnnx(reader(file)))
    expect(find(graph, 'small')).toEqual(GRAPH.initializers[0])
    const constant = graph.nodes[0]!.attributes['value']
    const places = [
      [find(graph, 'large'), GRAPH.initializers[1]],
      [find(graph, 'other'), GRAPH.initializers[2]],
      [constant?.kind === 'tensor' ? constant.value : undefined, tensor('', 7_000)],
    ] as const
    for (const [got, want] of places) {
      expect(got).toMatchObject({ name: want!.name, type: 'u8', dims: want!.dims })
      const place = got!.data
      if (place.kind !== 'external' || want!.data.kind !== 'inline') throw new Error('not external')
      expect(place.location).toBe('')
      expect(file.subarray(place.offset, place.offset + place.length)).toEqual(want!.data.bytes)
    }
    const rest = { ...graph, initializers: [], nodes: graph.nodes.slice(1) }
    expect(rest).toEqual({ ...GRAPH, initializers: [], nodes: GRAPH.nodes.slice(1) })
  })

  it('holds little of a file of many gigabytes', async () => {
    const start = writeOnnx({ ...GRAPH, initializers: [] })
    const weights = createProtobufWriter()
    const gigabytes = 20 * 2 ** 30
    // Tag and length of a graph, an initialiser and its raw data, written for data that isn't there.
    const varint = (value: number): number[] =>
      value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
    const data = [0x08, ...varint(gigabytes), 0x10, 2, 0x4a, ...varint(gigabytes)]
    const initializer = [0x2a, ...varint(data.length + gigabytes), ...data]
    weights.raw(Uint8Array.from([0x3a, ...varint(initializer.length + gigabytes), ...initializer]))
    const head = Uint8Array.from([...start, ...weights.finish()])
    let read = 0
    const slim = await slimOnnx({
      bytes: head.length + gigabytes,
      read: (offset, length) => {
        read += length
        const bytes = new Uint8Array(length)
        bytes.set(head.subarray(offset, offset + length))
        return Promise.resolve(bytes)
      },
    })
    expect(read).toBeLessThan(2 ** 20)
    const graph = readOnnx(slim)
    expect(graph.initializers[0]!.data).toMatchObject({ kind: 'external', length: gigabytes })
  })

  it('drops subgraphs, which are refused by the name of their node', async () => {
    const model = createProtobufWriter()
    model.message(7, (graph) =>
      graph.message(1, (node) => {
        node.string(3, 'branch')
        node.string(4, 'If')
        node.message(5, (attribute) => {
          attribute.string(1, 'then_branch')
          attribute.message(6, (inner) => inner.bytes(5, new Uint8Array(100_000)))
          attribute.varint(20, 5)
        })
      }),
    )
    const slim = await slimOnnx(reader(model.finish()))
    expect(slim.length).toBeLessThan(100)
    expect(() => readOnnx(slim)).toThrow(/^If \(branch\): attribute then_branch/)
  })

  it('says of any damage that the model is invalid, and never reads outside the file', async () => {
    const file = writeOnnx(GRAPH)
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        fc.nat(file.length),
        async (changes, end) => {
          const damaged = file.slice(0, end)
          for (const [at, byte] of changes) if (at < end) damaged[at] = byte
          const error: unknown = await slimOnnx(reader(damaged)).then(
            () => null,
            (thrown: unknown) => thrown,
          )
          if (error !== null) expect(error).toBeInstanceOf(CrowdError)
        },
      ),
      { numRuns: 300 },
    )
  })
})
