import { int, type Graph, type ValueInfo } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import {
  createGraphBuilder,
  finishGraph,
  MICROSOFT,
  type GraphBuilder,
} from '../model/graph-builder.ts'
import { tableDtype, type WeightDtype } from '../model/manifest.ts'
import type { WeightRecipes } from '../model/weight-recipe.ts'
import { Q4_BLOCK, q4Blocks } from '../tensor/quantize-q4.ts'
import { addLayer, addNorm, type Stream } from './decoder-layer.ts'
import { matrix, type Decoder } from './decoder.ts'
import { addShared, type Shared } from './shared.ts'

/**
 * The whole model as one graph in the canonical dialect, as exporters write it: the residual sum and the
 * next norm are one node. `input_ids` i64 [1, S], `attention_mask` i64 [1, T], `past_key_values.N.key` and
 * `.value` f32 [1, KV, P, D] → `logits` f32 [1, S, V], `present.N.key`, `present.N.value`.
 * Weights are external and have no place yet: see layout-weights.ts.
 */
export function buildDecoderGraph(
  decoder: Decoder,
  dtype: WeightDtype,
): { graph: Graph; recipes: WeightRecipes } {
  const builder = createGraphBuilder(dtype)
  const shared = addShared(builder, decoder)
  let stream: Stream = { residual: addEmbedding(builder, decoder, shared), skip: null }
  decoder.layers.forEach((spec, layer) => {
    stream = addLayer(builder, spec, { decoder, layer, shared, stream })
  })
  addHead(builder, decoder, stream)
  const graph = finishGraph(builder, { name: 'model', ...signature(decoder) })
  return { graph, recipes: builder.recipes }
}

function signature(decoder: Decoder): Pick<Graph, 'inputs' | 'outputs'> {
  const caches = (prefix: string, length: string): ValueInfo[] =>
    decoder.layers.flatMap((_, layer) =>
      ['key', 'value'].map((part): ValueInfo => ({
        name: `${prefix}.${layer}.${part}`,
        type: 'f32',
        dims: [1, decoder.kvHeadCount, length, decoder.headSize],
      })),
    )
  return {
    inputs: [
      { name: 'input_ids', type: 'i64', dims: [1, 'sequence_length'] },
      { name: 'attention_mask', type: 'i64', dims: [1, 'total_length'] },
      ...caches('past_key_values', 'past_length'),
    ],
    outputs: [
      { name: 'logits', type: 'f32', dims: [1, 'sequence_length', decoder.vocabSize] },
      ...caches('present', 'total_length'),
    ],
  }
}

/** f32 [1, S, H]. What follows the lookup belongs to the first layer's block. */
function addEmbedding(builder: GraphBuilder, decoder: Decoder, shared: Shared): string {
  const { node, constant } = builder
  const { scale, positions, norm } = decoder.embedding
  let states = addLookup(builder, decoder)
  if (scale !== 1) {
    const by = constant('embedding.scale', 'f32', [], Float32Array.of(scale))
    states = node('Mul', '/model/embed_tokens/Mul', [states, by])
  }
  if (positions !== null) {
    const { source, rows, offset } = positions
    const columns = decoder.hiddenSize
    const table = builder.weight(source, [rows, columns], {
      ...matrix(source, rows, columns),
      plus: 0,
      form: 'rows',
      type: 'f32',
    })
    const added = node('Gather', '/model/embed_positions/Gather', [table, shared.positions(offset)])
    states = node('Add', '/model/embed_positions/Add', [states, added])
  }
  return norm === null ? states : builder.norm('/model/embed_norm/LayerNorm', states, norm)
}

function addLookup(builder: GraphBuilder, decoder: Decoder): string {
  const { weight, node } = builder
  const dtype = tableDtype(builder.dtype)
  const { source } = decoder.embedding
  const { vocabSize: rows, hiddenSize: columns } = decoder
  const name = '/model/embed_tokens/Gather'
  const recipe = { ...matrix(source, rows, columns), plus: 0 }
  if (dtype !== 'q8') {
    const table = weight(source, [rows, columns], { ...recipe, form: 'rows', type: dtype })
    const gathered = node('Gather', name, [table, 'input_ids'])
    if (dtype === 'f32') return gathered
    return node('Cast', `${name}/Cast`, [gathered], { attributes: { to: int(TYPE_CODES.f32) } })
  }
  const packed = weight(`${source}_Q8`, [rows, columns], {
    ...recipe,
    form: 'q8-packed',
    type: 'u8',
  })
  const scales = weight(`${source}_scales`, [rows, q4Blocks(columns)], {
    ...recipe,
    form: 'q8-scales',
    type: 'f32',
  })
  return node('GatherBlockQuantized', name, [packed, 'input_ids', scales], {
    domain: MICROSOFT,
    attributes: {
      bits: int(8),
      block_size: int(Q4_BLOCK),
      gather_axis: int(0),
      quantize_axis: int(1),
    },
  })
}

function addHead(builder: GraphBuilder, decoder: Decoder, stream: Stream): void {
  const { head, finalNorm, vocabSize, hiddenSize } = decoder
  const { normed } = addNorm(builder, '/model/norm', stream, finalNorm)
  const name = '/lm_head/MatMul'
  const weights = matrix(head.source, vocabSize, hiddenSize)
  const steps = [
    ...(head.bias === null ? [] : [addBias]),
    ...(head.softcap === 0 ? [] : [addSoftcap]),
  ]
  const end = (done: number): string => (done === steps.length ? 'logits' : `${name}/step_${done}`)
  let logits = builder.rowLinear(name, normed, weights, end(0))
  steps.forEach((step, i) => {
    logits = step(builder, decoder, logits, end(i + 1))
  })
}

function addBias(builder: GraphBuilder, { head }: Decoder, logits: string, output: string): string {
  const bias = head.bias === null ? [] : [builder.vector(head.bias)]
  return builder.node('Add', '/lm_head/Add', [logits, ...bias], { outputs: [output] })
}

/** softcap × tanh(logits / softcap) (Gemma 2, arXiv 2408.00118). */
function addSoftcap(
  { node, constant }: GraphBuilder,
  { head }: Decoder,
  logits: string,
  output: string,
): string {
  const cap = constant('head.softcap', 'f32', [], Float32Array.of(head.softcap))
  const scaled = node('Div', '/lm_head/Div', [logits, cap])
  const squeezed = node('Tanh', '/lm_head/Tanh', [scaled])
  return node('Mul', '/lm_head/Mul', [squeezed, cap], { outputs: [output] })
}
