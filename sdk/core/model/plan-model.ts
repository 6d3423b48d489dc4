import { CrowdError } from '../errors.ts'
import { buildDecoderGraph } from '../decoder/decoder-graph.ts'
import type { Decoder } from '../decoder/decoder.ts'
import { writeOnnx } from '../graph/onnx-writer.ts'
import { Q4_BLOCK } from '../tensor/quantize-q4.ts'
import {
  layoutGraph,
  layoutWeights,
  type PlacedWeight,
  type WeightLayout,
} from './layout-weights.ts'
import {
  isQuantized,
  tableDtype,
  type Block,
  type EmbeddingTable,
  type WeightDtype,
} from './manifest.ts'
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

/** Everything about a model's blocks that follows from its description: graphs, places of weights, sizes. */
export function planModel(decoder: Decoder, dtype: WeightDtype): BlockPlan[] {
  checkBlockSize(decoder, dtype)
  const { graph, recipes } = buildDecoderGraph(decoder, dtype)
  const { table, layers, head } = partition(graph)

  const embedding = layoutWeights(table, recipes)
  const isTable = (recipe: { source: string }): boolean =>
    embedding.weights.some((weight) => weight.recipe.source === recipe.source)
  const placedHead = layoutGraph(head, recipes, isTable)
  return [
    {
      ...sizes('embedding', embedding),
      graph: null,
      table: describeTable(decoder, dtype, embedding),
      cuts: [],
    },
    ...layers.map((layer): BlockPlan => {
      const { graph: placed, layout } = layoutGraph(layer, recipes)
      return { ...sizes('layer', layout), graph: writeOnnx(placed), cuts: [] }
    }),
    {
      ...sizes('head', placedHead.layout),
      graph: writeOnnx(placedHead.graph),
      cuts: decoder.head.tied ? [embedding.bytes] : [],
    },
  ]
}

/** The unsplit model, for comparing: one graph and the places of its weights in one data file. */
export function planWholeModel(
  decoder: Decoder,
  dtype: WeightDtype,
): { readonly graph: Graph; readonly layout: WeightLayout } {
  checkBlockSize(decoder, dtype)
  const { graph, recipes } = buildDecoderGraph(decoder, dtype)
  return layoutGraph(graph, recipes)
}

function checkBlockSize(decoder: Decoder, dtype: WeightDtype): void {
  if (!isQuantized(dtype) || decoder.hiddenSize % Q4_BLOCK === 0) return
  throw new CrowdError(
    'model-unsupported',
    `The hidden size ${decoder.hiddenSize} is not a multiple of ${Q4_BLOCK}, which ${dtype} weights need.`,
  )
}

function sizes(
  kind: Block['kind'],
  layout: WeightLayout,
): Pick<BlockPlan, 'kind' | 'weights' | 'dataBytes' | 'f32Bytes'> {
  const { weights, bytes } = layout
  const f32Bytes = weights.reduce((sum, { recipe }) => {
    const isBeside = recipe.form.endsWith('-scales') || recipe.form.endsWith('-zeros')
    return isBeside ? sum : sum + recipe.rows * recipe.columns * 4
  }, 0)
  return { kind, weights, dataBytes: bytes, f32Bytes }
}

function describeTable(decoder: Decoder, dtype: WeightDtype, layout: WeightLayout): EmbeddingTable {
  const [values, scales] = layout.weights
  return {
    dtype: tableDtype(dtype),
    rows: decoder.vocabSize,
    columns: decoder.hiddenSize,
    offset: values?.offset ?? 0,
    ...(scales ? { scaleOffset: scales.offset } : {}),
  }
}
