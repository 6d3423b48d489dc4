import { CrowdError } from '../errors.ts'
import type { Graph, GraphNode, ValueInfo } from '../graph/graph.ts'
import { cutBlock, type Cuttable } from './cut-block.ts'
import { checkDialect } from './dialect.ts'
import { findLookup, type EmbeddingLookup } from './embedding-lookup.ts'
import { findAttention, findBorders } from './find-borders.ts'
import { isSkipNorm, sumOf, unfuseNorms } from './unfuse-norms.ts'

/** A decoder cut at every layer border. Graph names are those that manifest.ts documents. */
export type PartitionedModel = {
  /** The constants of the embedding: the table, or packed values, scales and zero points. */
  readonly table: EmbeddingLookup['constants']
  readonly lookup: EmbeddingLookup
  readonly hiddenSize: number
  readonly kvHeadCount: number
  readonly headSize: number
  readonly layers: readonly Graph[]
  readonly head: Graph
}

/**
 * Cuts a decoder graph by data flow into embedding, layers and head, with one f32 hidden tensor over each
 * border. Mask, position and rotary nodes are copied into each layer and fed by `seqlens_k` and
 * `total_sequence_length`; a fused residual+norm on a border becomes an Add before it and a norm after it.
 * @param headSize of graphs that leave it open
 * @throws CrowdError model-unsupported (operator and node named), model-invalid
 */
export function partition(whole: Graph, headSize?: number): PartitionedModel {
  checkDialect(whole)
  const attention = findAttention(whole)
  const borders = findBorders(whole)
  const onBorder = new Set(borders)
  const graph = {
    ...whole,
    nodes: unfuseNorms(whole.nodes, (node) => isSkipNorm(node) && onBorder.has(sumOf(node))),
  }
  const lookup = findLookup(graph)
  const cache = cacheShape(whole, attention, headSize)
  const cuttable = { graph, borders }
  const hiddenSize = lookup.columns
  const layers = attention.map(({ layer, node }, i) => {
    const [from = '', to = ''] = borders.slice(i, i + 2)
    return cutLayer(cuttable, { layer, node, from, to, hiddenSize, ...cache })
  })
  const head = cutHead(cuttable, borders.at(-1) ?? '', hiddenSize)
  return { table: lookup.constants, lookup, hiddenSize, ...cache, layers, head }
}

type CacheShape = { readonly kvHeadCount: number; readonly headSize: number }

/** One shape for all layers: a session's caches are planned by it. */
function cacheShape(
  graph: Graph,
  attention: readonly { layer: number }[],
  headSize: number | undefined,
): CacheShape {
  const shapes = attention.map(({ layer }) => {
    const cache = graph.inputs.find((input) => input.name === `past_key_values.${layer}.key`)
    const [, heads, , given] = cache?.dims ?? []
    const size = typeof given === 'number' ? given : headSize
    if (cache?.type === 'f32' && typeof heads === 'number' && size !== undefined) {
      return { kvHeadCount: heads, headSize: size }
    }
    throw new CrowdError(
      'model-unsupported',
      `The cache of layer ${layer} must be f32 with fixed heads and head size.`,
    )
  })
  const [first = { kvHeadCount: 0, headSize: 0 }] = shapes
  const other = shapes.findIndex(
    (shape) => shape.kvHeadCount !== first.kvHeadCount || shape.headSize !== first.headSize,
  )
  if (other === -1) return first
  throw new CrowdError(
    'model-unsupported',
    `The cache of layer ${attention[other]?.layer ?? other} has another shape than that of the first.`,
  )
}

function hiddenValue(name: string, hiddenSize: number): ValueInfo {
  return { name, type: 'f32', dims: [1, 'tokens', hiddenSize] }
}

type LayerCut = CacheShape & {
  readonly layer: number
  readonly node: GraphNode
  readonly from: string
  readonly to: string
  readonly hiddenSize: number
}

function cutLayer(cuttable: Cuttable, cut: LayerCut): Graph {
  const { layer, node, from, to, hiddenSize, kvHeadCount, headSize } = cut
  const cacheValue = (name: string, length: string): ValueInfo => ({
    name,
    type: 'f32',
    dims: [1, kvHeadCount, length, headSize],
  })
  const renames = new Map([
    [from, 'hidden'],
    [to, 'hidden_out'],
    [`present.${layer}.key`, 'present.key'],
    [`present.${layer}.value`, 'present.value'],
  ])
  if (node.op === 'GroupQueryAttention') {
    renames.set(node.inputs[5] ?? '', 'seqlens_k')
    renames.set(node.inputs[6] ?? '', 'total_sequence_length')
  }
  return cutBlock(
    cuttable,
    { from, layer, renames },
    {
      name: `layer ${layer}`,
      inputs: [
        hiddenValue('hidden', hiddenSize),
        cacheValue('past.key', 'past'),
        cacheValue('past.value', 'past'),
        { name: 'seqlens_k', type: 'i32', dims: [1] },
        { name: 'total_sequence_length', type: 'i32', dims: [] },
      ],
      outputs: [
        hiddenValue('hidden_out', hiddenSize),
        cacheValue('present.key', 'present'),
        cacheValue('present.value', 'present'),
      ],
    },
  )
}

function cutHead(cuttable: Cuttable, from: string, hiddenSize: number): Graph {
  const logits = cuttable.graph.outputs.find((output) => output.name === 'logits')
  if (logits?.type !== 'f32') {
    throw new CrowdError('model-unsupported', 'The logits of the graph must be f32.')
  }
  const dims = logits.dims.map((dim, i) => (i === 0 ? 1 : i === 1 ? 'tokens' : dim))
  return cutBlock(
    cuttable,
    { from, layer: null, renames: new Map([[from, 'hidden']]) },
    {
      name: 'head',
      inputs: [hiddenValue('hidden', hiddenSize)],
      outputs: [{ name: 'logits', type: 'f32', dims }],
    },
  )
}
