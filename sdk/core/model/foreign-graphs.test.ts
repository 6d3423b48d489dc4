import { describe, expect, it } from 'vitest'
import { createRandomModel } from '../../../test/support/models.ts'
import { CrowdError } from '../errors.ts'
import { float, type Graph, type GraphNode } from '../graph/graph.ts'
import { partition } from './partition.ts'
import { unfuseNorms } from './unfuse-norms.ts'

const whole = (): Graph => createRandomModel({ num_hidden_layers: 3 }).whole.graph

function refusal(graph: Graph): string {
  try {
    partition(graph)
    return 'accepted'
  } catch (error) {
    return error instanceof CrowdError ? `${error.code}: ${error.message}` : String(error)
  }
}

function withNode(graph: Graph, node: GraphNode, at: number): Graph {
  return { ...graph, nodes: graph.nodes.toSpliced(at, 0, node) }
}

const placeOf = (graph: Graph, name: string): number =>
  graph.nodes.findIndex((node) => node.name === name)

function reader(op: string, input: string): GraphNode {
  return { name: 'odd', op, domain: '', inputs: [input], outputs: ['odd/output_0'], attributes: {} }
}

describe('graphs of other exporters', () => {
  it.each([
    ['past_conv.0', 'Concat (odd) reads the input past_conv.0, which'],
    ['past_key_values.1.conv_state', 'Concat (odd) reads the input past_key_values.1.conv_state'],
    ['use_cache_branch', 'Concat (odd) reads the input use_cache_branch'],
    ['inputs_embeds', 'Concat (odd) reads the input inputs_embeds'],
  ])('are refused for the input %s, by the node that reads it', (name, want) => {
    const graph = whole()
    const input = { name, type: 'f32', dims: [1, 4, 3] } as const
    const changed = withNode(graph, reader('Concat', name), 0)
    expect(refusal({ ...changed, inputs: [...graph.inputs, input] })).toContain(
      `model-unsupported: ${want}`,
    )
  })

  it.each(['If', 'Loop', 'LSTM', 'RandomNormalLike', 'Conv', 'DropoutGrad'])(
    'are refused for %s, by name',
    (op) => {
      expect(refusal(withNode(whole(), reader(op, 'input_ids'), 0))).toBe(
        `model-unsupported: The operator ${op} (odd) can't be cut.`,
      )
    },
  )

  it('are refused where a layer reads the cache of another', () => {
    const graph = whole()
    const name = '/model/layers.2/mlp/Mul'
    const changed = {
      ...graph,
      nodes: graph.nodes.map((node) =>
        node.name === name
          ? { ...node, inputs: [node.inputs[0] ?? '', 'past_key_values.0.value'] }
          : node,
      ),
    }
    expect(refusal(changed)).toBe(
      `model-unsupported: Mul (${name}) in layer 2 reads the cache of layer 0.`,
    )
  })

  it('are refused where the caches of layers differ in shape', () => {
    const graph = whole()
    const inputs = graph.inputs.map((input) =>
      input.name === 'past_key_values.1.key'
        ? { ...input, dims: [1, 4, 'past_length', 16] }
        : input,
    )
    expect(refusal({ ...graph, inputs })).toContain('The cache of layer 1 has another shape')
  })

  it('may leave the head size open', () => {
    const graph = whole()
    const inputs = graph.inputs.map((input) =>
      input.name.startsWith('past') ? { ...input, dims: [1, 2, 'past', 'kv_cache_dim'] } : input,
    )
    expect(refusal({ ...graph, inputs })).toContain('with fixed heads and head size')
    expect(partition({ ...graph, inputs }, 16).layers[2]!.inputs[1]!.dims).toEqual([
      1,
      2,
      'past',
      16,
    ])
  })

  it('may number their layers in any way: data decides the order', () => {
    const graph = whole()
    const other = (name: string): string =>
      name.replace(
        /^(past_key_values|present)\.(\d+)/,
        (_, word: string, number: string) => `${word}.${30 - 7 * Number(number)}`,
      )
    const renamed = {
      ...graph,
      inputs: graph.inputs.map((input) => ({ ...input, name: other(input.name) })).reverse(),
      outputs: graph.outputs.map((output) => ({ ...output, name: other(output.name) })),
      nodes: graph.nodes.map((node) => ({
        ...node,
        inputs: node.inputs.map(other),
        outputs: node.outputs.map(other),
      })),
    }
    const ops = ({ layers }: ReturnType<typeof partition>): string[][] =>
      layers.map(({ nodes }) => nodes.map(({ name }) => name))
    expect(ops(partition(renamed))).toEqual(ops(partition(graph)))
    expect(partition(renamed).layers.map(({ name }) => name)).toEqual([
      'layer 30',
      'layer 23',
      'layer 16',
    ])
  })

  it('may take the lengths from shapes of tensors that lie before the border', () => {
    const graph = whole()
    const place = placeOf(graph, '/model/layers.1/attn/GroupQueryAttention')
    const attention = graph.nodes[place]!
    // What another exporter does to get the total length: the rows of the first cache and of the embedding.
    const lengths: GraphNode[] = [
      reader('Shape', 'past_key_values.0.key'),
      {
        ...reader('Shape', '/model/embed_tokens/Gather/output_0'),
        name: 'rows',
        outputs: ['rows'],
      },
      {
        ...reader('Concat', 'odd/output_0'),
        name: 'joined',
        inputs: ['odd/output_0', 'rows'],
        outputs: ['joined'],
      },
      { ...reader('Cast', 'joined'), name: 'cast', outputs: ['cast'] },
    ]
    const changed = {
      ...graph,
      nodes: graph.nodes.toSpliced(place, 1, ...lengths, {
        ...attention,
        inputs: [...attention.inputs, 'cast'],
      }),
    }
    const { layers } = partition(changed)
    const shapes = layers[1]!.nodes
      .filter(({ op }) => op === 'Shape')
      .map(({ inputs }) => inputs[0])
    expect(shapes).toEqual(['hidden', 'local.past.key', 'hidden'])
    expect(layers[1]!.initializers.map(({ name }) => name)).not.toContain(
      'model.embed_tokens.weight',
    )
    expect(layers[0]!.nodes.some(({ name }) => name === 'cast')).toBe(false)
  })
})

describe('unfuseNorms', () => {
  it('takes a layer norm with shift and bias apart into sums and a plain norm', () => {
    const fused: GraphNode = {
      name: 'norm',
      op: 'SkipLayerNormalization',
      domain: 'com.microsoft',
      inputs: ['residual', 'skip', 'gamma', 'beta', 'bias'],
      outputs: ['normed', '', '', 'sum'],
      attributes: { epsilon: float(0.5) },
    }
    const parts = unfuseNorms([fused], () => true)
    expect(parts.map(({ op, inputs, outputs }) => [op, ...inputs, ...outputs])).toEqual([
      ['Add', 'residual', 'skip', 'sum/unbiased'],
      ['Add', 'sum/unbiased', 'bias', 'sum'],
      ['LayerNormalization', 'sum', 'gamma', 'beta', 'normed'],
    ])
    expect(parts[2]!.attributes['epsilon']).toEqual(float(0.5))
  })
})
