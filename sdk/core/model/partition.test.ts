import { describe, expect, it } from 'vitest'
import { createRandomModel } from '../../../test/support/models.ts'
import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode } from '../graph/graph.ts'
import { findBorders } from './find-borders.ts'
import { partition } from './partition.ts'

const whole = (changes: Record<string, unknown> = {}): Graph =>
  createRandomModel({ num_hidden_layers: 3, ...changes }).whole.graph

function withNodes(graph: Graph, change: (node: GraphNode) => GraphNode): Graph {
  return { ...graph, nodes: graph.nodes.map(change) }
}

function refusal(graph: Graph): string {
  try {
    partition(graph)
    return 'accepted'
  } catch (error) {
    return error instanceof CrowdError ? `${error.code}: ${error.message}` : String(error)
  }
}

const ops = (graph: Graph): string[] => graph.nodes.map((node) => node.op)

describe('partition', () => {
  it('finds the residual stream at every border', () => {
    expect(findBorders(whole())).toEqual([
      '/model/embed_tokens/Gather/output_0',
      '/model/layers.1/input_layernorm/SkipLayerNorm/output_3',
      '/model/layers.2/input_layernorm/SkipLayerNorm/output_3',
      '/model/norm/SkipLayerNorm/output_3',
    ])
  })

  it('does not need names: the same borders when every value and node is called something else', () => {
    const graph = whole()
    const kept = /^(input_ids|attention_mask|logits|past_key_values|present)/
    const names = new Map<string, string>()
    const anonymous = (name: string): string => {
      if (name === '' || kept.test(name)) return name
      if (!names.has(name)) names.set(name, `v${names.size}`)
      return names.get(name)!
    }
    const renamed = {
      ...withNodes(graph, (node) => ({
        ...node,
        name: anonymous(node.name),
        inputs: node.inputs.map(anonymous),
        outputs: node.outputs.map(anonymous),
      })),
      initializers: graph.initializers.map((entry) => ({ ...entry, name: anonymous(entry.name) })),
    }
    expect(findBorders(renamed)).toEqual(findBorders(graph).map(anonymous))
    expect(partition(renamed).layers.map(ops)).toEqual(partition(graph).layers.map(ops))
  })

  it('gives every layer the documented inputs and outputs, with one hidden tensor each way', () => {
    for (const layer of partition(whole()).layers) {
      expect(layer.inputs.map(({ name }) => name)).toEqual([
        'hidden',
        'past.key',
        'past.value',
        'seqlens_k',
        'total_sequence_length',
      ])
      expect(layer.outputs.map(({ name }) => name)).toEqual([
        'hidden_out',
        'present.key',
        'present.value',
      ])
      expect(layer.inputs[0]!.dims).toEqual([1, 'tokens', 64])
      expect(layer.inputs[1]!.dims).toEqual([1, 2, 'past', 16])
    }
  })

  it('ends a layer with an Add, begins it with a plain norm, and keeps the inner norm fused', () => {
    const { layers, head } = partition(whole())
    for (const layer of layers) {
      const last = layer.nodes.find((node) => node.outputs.includes('hidden_out'))
      expect(last?.op).toBe('Add')
      const first = layer.nodes.filter((node) => node.inputs.includes('hidden'))
      expect(first.map((node) => node.op)).toEqual([
        'SimplifiedLayerNormalization',
        'SkipSimplifiedLayerNormalization',
      ])
    }
    expect(ops(head)).toEqual(['SimplifiedLayerNormalization', 'FusedMatMul'])
  })

  it('copies rotary nodes into every layer and leaves the mask out', () => {
    for (const layer of partition(whole({ num_attention_heads: 8, head_dim: 8 })).layers) {
      expect(ops(layer)).toEqual(expect.arrayContaining(['Range', 'Cos', 'Sin', 'RotaryEmbedding']))
      expect(ops(layer)).not.toContain('ReduceSum')
      const shape = layer.nodes.find((node) => node.op === 'Shape')
      expect(shape?.inputs).toEqual(['hidden'])
    }
  })

  it('gives each block only its own weights, all of them', () => {
    const graph = whole({ tie_word_embeddings: false })
    const { table, layers, head } = partition(graph)
    const external = (block: Pick<Graph, 'initializers'>): string[] =>
      block.initializers.filter(({ data }) => data.kind === 'external').map(({ name }) => name)
    const all = [...table.map(({ name }) => name), ...[...layers, head].flatMap(external)]
    expect(new Set(all).size).toBe(all.length)
    expect(all.toSorted()).toEqual(external(graph).toSorted())
    layers.forEach((layer, i) => {
      expect(
        external(layer).every((name) => /layers\.(\d)[./]/.exec(name)?.[1] === String(i)),
      ).toBe(true)
    })
  })

  it('refuses an operator that it does not know, by name', () => {
    const graph = withNodes(whole(), (node) =>
      node.op === 'Sigmoid' ? { ...node, op: 'Conv' } : node,
    )
    expect(refusal(graph)).toBe(
      "model-unsupported: The operator Conv (/model/layers.0/mlp/act_fn/Sigmoid) can't be cut.",
    )
  })

  it('refuses a border that two tensors cross', () => {
    const down = (layer: number): string => `/model/layers.${layer}/mlp/down_proj/MatMul/output_0`
    const graph = withNodes(whole(), (node) =>
      node.name === '/model/layers.2/post_attention_layernorm/SkipLayerNorm'
        ? { ...node, inputs: [down(0), ...node.inputs.slice(1)] }
        : node,
    )
    expect(refusal(graph)).toMatch(/^model-unsupported: No single tensor separates/)
  })

  it('refuses a graph whose nodes are out of order, cache or logits missing', () => {
    const graph = whole()
    expect(refusal({ ...graph, nodes: graph.nodes.toReversed() })).toMatch(/^model-invalid: /)
    const noCache = withNodes(graph, (node) => ({
      ...node,
      inputs: node.inputs.map((name) => (name.startsWith('past_') ? '' : name)),
    }))
    expect(refusal(noCache)).toMatch(/reads no past_key_values/)
  })
})
