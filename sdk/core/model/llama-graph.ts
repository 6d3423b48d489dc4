import { int, type Graph, type ValueInfo } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import { q4Blocks, Q4_BLOCK } from '../tensor/quantize-q4.ts'
import { createGraphBuilder, finishGraph, MICROSOFT, type GraphBuilder } from './graph-builder.ts'
import type { LlamaConfig } from './llama-config.ts'
import { addLayer, addNorm, type Shared, type Stream } from './llama-layer.ts'
import type { WeightDtype } from './manifest.ts'
import { inverseFrequencies } from './rope.ts'
import type { WeightRecipes } from './weight-recipe.ts'

/**
 * The whole model as one graph in the canonical dialect, as exporters write it: the residual sum and the
 * next norm are one node. `input_ids` i64 [1, S], `attention_mask` i64 [1, T], `past_key_values.N.key` and
 * `.value` f32 [1, KV, P, D] → `logits` f32 [1, S, V], `present.N.key`, `present.N.value`.
 * Weights are external and have no place yet: see layout-weights.ts.
 */
export function buildLlamaGraph(
  config: LlamaConfig,
  dtype: WeightDtype,
): { graph: Graph; recipes: WeightRecipes } {
  const builder = createGraphBuilder(dtype, config.normEpsilon)
  const shared = addShared(builder, config)
  let stream: Stream = { residual: addEmbedding(builder, config, dtype), skip: null }
  for (let layer = 0; layer < config.layerCount; layer++) {
    stream = addLayer(builder, { config, layer, shared, stream })
  }
  addHead(builder, config, stream)
  const graph = finishGraph(builder, { name: 'model', ...signature(config) })
  return { graph, recipes: builder.recipes }
}

function signature(config: LlamaConfig): Pick<Graph, 'inputs' | 'outputs'> {
  const caches = (prefix: string, length: string): ValueInfo[] =>
    Array.from({ length: config.layerCount }, (_, layer) =>
      ['key', 'value'].map((part): ValueInfo => ({
        name: `${prefix}.${layer}.${part}`,
        type: 'f32',
        dims: [1, config.kvHeadCount, length, config.headSize],
      })),
    ).flat()
  return {
    inputs: [
      { name: 'input_ids', type: 'i64', dims: [1, 'sequence_length'] },
      { name: 'attention_mask', type: 'i64', dims: [1, 'total_length'] },
      ...caches('past_key_values', 'past_length'),
    ],
    outputs: [
      { name: 'logits', type: 'f32', dims: [1, 'sequence_length', config.vocabSize] },
      ...caches('present', 'total_length'),
    ],
  }
}

/** Lengths from the mask, and the rotary tables, computed from a few numbers instead of stored. */
function addShared(builder: GraphBuilder, config: LlamaConfig): Shared {
  const { node, constant } = builder
  const mask = '/model/attn_mask_reformat'
  const one = constant('const.one', 'i64', [], BigInt64Array.of(1n))
  const axis = constant('const.axis_1', 'i64', [1], BigInt64Array.of(1n))
  const count = node('ReduceSum', `${mask}/ReduceSum`, ['attention_mask', axis], {
    attributes: { keepdims: int(0) },
  })
  const last = node('Sub', `${mask}/Sub`, [count, one])
  const toInt32 = { attributes: { to: int(TYPE_CODES.i32) } }
  const seqlens = node('Cast', `${mask}/Sub/Cast`, [last], toInt32)
  const maskShape = node('Shape', `${mask}/Shape`, ['attention_mask'])
  const length = node('Gather', `${mask}/Gather`, [maskShape, one])
  const total = node('Cast', `${mask}/Gather/Cast`, [length], toInt32)
  return {
    seqlens,
    total,
    ...addRotaryTables(builder, config),
    position: fusesRotary(config) ? null : addPosition(builder, total, one),
  }
}

/** GroupQueryAttention rotates by itself only where the head size is a multiple of 16. */
function fusesRotary(config: LlamaConfig): boolean {
  return config.headSize % 16 === 0
}

/** i64 [1]: the position of the first new token. */
function addPosition({ node, constant }: GraphBuilder, total: string, one: string): string {
  const shape = node('Shape', '/model/position/Shape', ['input_ids'])
  const tokens = node('Gather', '/model/position/Gather', [shape, one])
  const length = node('Cast', '/model/position/Cast', [total], {
    attributes: { to: int(TYPE_CODES.i64) },
  })
  const past = node('Sub', '/model/position/Sub', [length, tokens])
  const axis = constant('const.axis_0', 'i64', [1], BigInt64Array.of(0n))
  return node('Unsqueeze', '/model/position/Unsqueeze', [past, axis])
}

/** f32 [context, headSize / 2] each. A stored table would be downloaded by every stage. */
function addRotaryTables(
  { node, constant }: GraphBuilder,
  config: LlamaConfig,
): Pick<Shared, 'cos' | 'sin'> {
  const half = config.headSize / 2
  const start = constant('rope.start', 'f32', [], Float32Array.of(0))
  const limit = constant('rope.limit', 'f32', [], Float32Array.of(config.contextLength))
  const step = constant('rope.step', 'f32', [], Float32Array.of(1))
  const frequencies = inverseFrequencies(config.rope, config.headSize)
  const inverse = constant('rope.inv_freq', 'f32', [1, half], frequencies)
  const column = constant('rope.column', 'i64', [2], BigInt64Array.of(-1n, 1n))
  const positions = node('Range', '/model/rope/Range', [start, limit, step])
  const reshaped = node('Reshape', '/model/rope/Reshape', [positions, column])
  const angles = node('Mul', '/model/rope/Mul', [reshaped, inverse])
  return {
    cos: node('Cos', '/model/rope/Cos', [angles], { outputs: ['cos_cache'] }),
    sin: node('Sin', '/model/rope/Sin', [angles], { outputs: ['sin_cache'] }),
  }
}

const EMBEDDING = 'model.embed_tokens.weight'

/** f32 [1, S, H]. */
function addEmbedding(builder: GraphBuilder, config: LlamaConfig, dtype: WeightDtype): string {
  const { vocabSize: rows, hiddenSize: columns } = config
  const name = '/model/embed_tokens/Gather'
  const matrix = { source: EMBEDDING, rows, columns }
  if (dtype !== 'q4') {
    const recipe = { ...matrix, form: 'rows', type: dtype } as const
    const table = builder.weight(EMBEDDING, [rows, columns], recipe)
    const gathered = builder.node('Gather', name, [table, 'input_ids'])
    if (dtype === 'f32') return gathered
    const toFloat = { attributes: { to: int(TYPE_CODES.f32) } }
    return builder.node('Cast', `${name}/Cast`, [gathered], toFloat)
  }
  const blocks = q4Blocks(columns)
  const packed = builder.weight(`${EMBEDDING}_Q4`, [rows, columns / 2], {
    ...matrix,
    form: 'q4-packed',
    type: 'u8',
  })
  const scales = builder.weight(`${EMBEDDING}_scales`, [rows, blocks], {
    ...matrix,
    form: 'q4-scales',
    type: 'f32',
  })
  return builder.node('GatherBlockQuantized', name, [packed, 'input_ids', scales], {
    domain: MICROSOFT,
    attributes: {
      bits: int(4),
      block_size: int(Q4_BLOCK),
      gather_axis: int(0),
      quantize_axis: int(1),
    },
  })
}

function addHead(builder: GraphBuilder, config: LlamaConfig, stream: Stream): void {
  const { normed } = addNorm(builder, '/model/norm', stream, {
    source: 'model.norm.weight',
    size: config.hiddenSize,
  })
  builder.rowLinear('/lm_head/MatMul', normed, {
    source: config.tiedEmbedding ? EMBEDDING : 'lm_head.weight',
    rows: config.vocabSize,
    columns: config.hiddenSize,
    output: 'logits',
  })
}
