import { CrowdError } from '../errors.ts'
import { writeOnnx } from '../graph/onnx-writer.ts'
import { Q4_BLOCK } from '../tensor/quantize-q4.ts'
import {
  layoutGraph,
  layoutWeights,
  type PlacedWeight,
  type WeightLayout,
} from './layout-weights.ts'
import type { LlamaConfig } from './llama-config.ts'
import { buildLlamaGraph } from './llama-graph.ts'
import type { Block, EmbeddingTable, WeightDtype } from './manifest.ts'
import { partition } from './partition.ts'
import type { Graph } from '../graph/graph.ts'

/** A block before its bytes exist. */
export type BlockPlan = Pick<Block, 'kind' | 'dataBytes' | 'f32Bytes' | 'table'> & {
  readonly graph: Uint8Array<ArrayBuffer> | null
  readonly weights: readonly PlacedWeight[]
  /**
   * Offsets at which a piece must begin (0 is understood). A tied table is cut off in the head, so that
   * its pieces are the embedding's and have to be fetched and stored once.
   */
  readonly cuts: readonly number[]
}

/** Everything about a model's blocks that follows from config.json: graphs, places of weights, sizes. */
export function planModel(config: LlamaConfig, dtype: WeightDtype): BlockPlan[] {
  checkBlockSize(config, dtype)
  const { graph, recipes } = buildLlamaGraph(config, dtype)
  const { table, layers, head } = partition(graph)

  const embedding = layoutWeights(table, recipes)
  const isTable = (recipe: { source: string }): boolean =>
    embedding.weights.some((weight) => weight.recipe.source === recipe.source)
  const placedHead = layoutGraph(head, recipes, isTable)
  return [
    {
      ...sizes('embedding', embedding),
      graph: null,
      table: describeTable(config, dtype, embedding),
      cuts: [],
    },
    ...layers.map((layer): BlockPlan => {
      const { graph: placed, layout } = layoutGraph(layer, recipes)
      return { ...sizes('layer', layout), graph: writeOnnx(placed), cuts: [] }
    }),
    {
      ...sizes('head', placedHead.layout),
      graph: writeOnnx(placedHead.graph),
      cuts: config.tiedEmbedding ? [embedding.bytes] : [],
    },
  ]
}

/** The unsplit model, for comparing: one graph and the places of its weights in one data file. */
export function planWholeModel(
  config: LlamaConfig,
  dtype: WeightDtype,
): { readonly graph: Graph; readonly layout: WeightLayout } {
  checkBlockSize(config, dtype)
  const { graph, recipes } = buildLlamaGraph(config, dtype)
  return layoutGraph(graph, recipes)
}

function checkBlockSize(config: LlamaConfig, dtype: WeightDtype): void {
  if (dtype !== 'q4' || config.hiddenSize % Q4_BLOCK === 0) return
  throw new CrowdError(
    'model-unsupported',
    `The hidden size ${config.hiddenSize} is not a multiple of ${Q4_BLOCK}, which 4-bit weights need.`,
  )
}

function sizes(
  kind: Block['kind'],
  layout: WeightLayout,
): Pick<BlockPlan, 'kind' | 'weights' | 'dataBytes' | 'f32Bytes'> {
  const { weights, bytes } = layout
  const f32Bytes = weights.reduce((sum, { recipe }) => {
    return recipe.form === 'q4-scales' ? sum : sum + recipe.rows * recipe.columns * 4
  }, 0)
  return { kind, weights, dataBytes: bytes, f32Bytes }
}

function describeTable(
  config: LlamaConfig,
  dtype: WeightDtype,
  layout: WeightLayout,
): EmbeddingTable {
  const [values, scales] = layout.weights
  return {
    dtype,
    rows: config.vocabSize,
    columns: config.hiddenSize,
    offset: values?.offset ?? 0,
    ...(scales ? { scaleOffset: scales.offset } : {}),
  }
}
