import { describe, expect, it } from 'vitest'
import { createRandomModel, randomFloats } from '../../../test/support/models.ts'
import type { Graph } from '../graph/graph.ts'
import { readOnnx } from '../graph/onnx-reader.ts'
import { asBytes, asFloats } from '../tensor/views.ts'
import { floatsToHalves, halvesToFloats } from '../tensor/float16.ts'
import { foldConstants } from './fold-constants.ts'
import { lowerBlock, type LoweredBlock } from './lower.ts'
import type { WeightDtype } from './manifest.ts'
import type { Provider } from './provider.ts'

async function lowered(
  dtype: WeightDtype,
  provider: Provider,
  block: number,
): Promise<{ result: LoweredBlock; graph: Graph; data: Uint8Array }> {
  const model = createRandomModel({}, dtype)
  const data = await model.blockBytes(block)
  const result = lowerBlock({ graph: model.plans[block]!.graph!, data }, provider)
  return { result, graph: readOnnx(result.model), data }
}

const ops = (graph: Graph): Set<string> => new Set(graph.nodes.map((node) => node.op))
const outputs = (graph: Graph): string[] => graph.outputs.map(({ name }) => name)
const LAYER = 1
const HEAD = 3

describe('lowering', () => {
  it.each(['wasm', 'cpu', 'cuda'] as const)('on %s returns only new rows', async (provider) => {
    const { result, graph } = await lowered('f16', provider, LAYER)
    expect(result.kv).toBe('delta')
    expect(outputs(graph)).toEqual(['hidden_out', 'new.key', 'new.value'])
  })

  it('on WebGPU keeps the cache an output, to be shared with the input', async () => {
    const { result, graph } = await lowered('f16', 'webgpu', LAYER)
    expect(result.kv).toBe('shared')
    expect(outputs(graph)).toEqual(['hidden_out', 'present.key', 'present.value'])
  })

  it('on WebGPU in Node returns only new rows, since nobody can share a buffer there', async () => {
    const model = createRandomModel({}, 'f16')
    const block = { graph: model.plans[LAYER]!.graph!, data: await model.blockBytes(LAYER) }
    const result = lowerBlock(block, 'webgpu', 'delta')
    expect(result.kv).toBe('delta')
    expect(outputs(readOnnx(result.model))).toEqual(['hidden_out', 'new.key', 'new.value'])
  })

  it('leaves the head without caches', async () => {
    const { result, graph } = await lowered('f32', 'wasm', HEAD)
    expect(result.kv).toBe('none')
    expect(outputs(graph)).toEqual(['logits'])
  })

  it('widens half weights to f32 and folds the rotary tables', async () => {
    const { graph } = await lowered('f16', 'wasm', LAYER)
    expect(ops(graph).has('Range')).toBe(false)
    expect(graph.nodes.some((node) => node.name.includes('weight/Cast'))).toBe(false)
    expect(graph.initializers.some(({ type }) => type === 'f16')).toBe(false)
    const cos = graph.initializers.find(({ name }) => name === 'cos_cache')
    expect(cos?.dims).toEqual([64, 8])
  })

  it.each([
    ['wasm', false],
    ['cpu', true],
    ['webgpu', true],
  ] as const)('on %s keeps 4-bit products: %s', async (provider, kept) => {
    const { graph } = await lowered('q4', provider, LAYER)
    expect(ops(graph).has('MatMulNBits')).toBe(kept)
    expect(ops(graph).has('FusedMatMul')).toBe(!kept)
    expect(graph.initializers.some(({ type }) => type === 'u8')).toBe(kept)
  })

  it('does not copy the weights that stay as they are', async () => {
    const { result, data } = await lowered('f32', 'cpu', LAYER)
    const file = result.externalData.find(({ path }) => path === 'data')
    expect(file?.data).toBe(data)
    expect(result.model.length).toBeLessThan(10_000)
  })

  it('refuses data that is shorter than the graph says, naming the weight', async () => {
    const model = createRandomModel({}, 'f32')
    const data = await model.blockBytes(LAYER)
    const block = { graph: model.plans[LAYER]!.graph!, data: data.subarray(0, data.length - 4) }
    expect(() => lowerBlock(block, 'wasm')).toThrow(/^The weight .* ends at byte \d+ of \d+/)
  })
})

describe('folding', () => {
  it('gives the values that the nodes stand for', () => {
    const halves = floatsToHalves(randomFloats(6, 3))
    const graph: Graph = {
      name: 'fold',
      inputs: [],
      outputs: [{ name: 'wide', type: 'f32', dims: [2, 3] }],
      initializers: [
        {
          name: 'half',
          type: 'f16',
          dims: [2, 3],
          data: { kind: 'inline', bytes: asBytes(halves) },
        },
      ],
      nodes: [
        {
          name: 'cast',
          op: 'Cast',
          domain: '',
          inputs: ['half'],
          outputs: ['wide'],
          attributes: { to: { kind: 'int', value: 1 } },
        },
      ],
    }
    const folded = foldConstants(graph, ({ data }) =>
      data.kind === 'inline' ? data.bytes : new Uint8Array(),
    )
    expect(folded.nodes).toEqual([])
    const wide = folded.initializers.find(({ name }) => name === 'wide')
    expect(wide?.dims).toEqual([2, 3])
    const bytes = wide?.data.kind === 'inline' ? wide.data.bytes : new Uint8Array()
    expect([...asFloats(bytes)]).toEqual([...halvesToFloats(halves)])
  })

  it('makes the cosine of position times frequency', async () => {
    const { graph, result } = await lowered('f32', 'wasm', LAYER)
    const cos = graph.initializers.find(({ name }) => name === 'cos_cache')
    const place = cos!.data
    const bytes =
      place.kind === 'external'
        ? result.externalData.find(({ path }) => path === place.location)!.data
        : place.bytes
    const values = asFloats(bytes)
    for (const [position, pair] of [
      [0, 0],
      [1, 0],
      [63, 7],
      [40, 3],
    ] as const) {
      const angle = position * 10_000 ** ((-2 * pair) / 16)
      expect(values[position * 8 + pair]).toBeCloseTo(Math.cos(angle), 5)
    }
  })
})
