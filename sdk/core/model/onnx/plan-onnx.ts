import { CrowdError } from '../../errors.ts'
import type { Graph, GraphNode } from '../../graph/graph.ts'
import { writeOnnx } from '../../graph/onnx-writer.ts'
import { LAYERS_MAX, PIECE_BYTES } from '../../limits.ts'
import { elementCount } from '../../tensor/dtype.ts'
import type { EmbeddingLookup } from '../embedding-lookup.ts'
import type { Block, EmbeddingTable, WeightDtype } from '../manifest.ts'
import { partition, type PartitionedModel } from '../partition.ts'
import { canonicalise } from './canonicalise.ts'
import { intOf } from './constant-value.ts'
import { layoutCopies, sourceKey, type CopiedWeight, type LayoutOptions } from './layout-copies.ts'
import type { OnnxConfig } from './onnx-config.ts'
import { rotaryRows, rotaryTables, trimRotary } from './trim-rotary.ts'

/** A block of an exported model before its bytes are copied. */
export type OnnxBlockPlan = Pick<Block, 'kind' | 'dataBytes' | 'f32Bytes' | 'table'> & {
  readonly weightCount: number
  readonly graph: Uint8Array<ArrayBuffer> | null
  readonly weights: readonly CopiedWeight[]
  /** Offsets at which a piece must begin, so that a tied table is stored once. */
  readonly cuts: readonly number[]
}

export type OnnxPlan = Pick<PartitionedModel, 'hiddenSize' | 'kvHeadCount' | 'headSize'> & {
  readonly blocks: readonly OnnxBlockPlan[]
  readonly vocabSize: number
  readonly contextLength: number
  readonly dtype: WeightDtype
}

/**
 * Cuts an exporter's graph into blocks and says which bytes of its files go where.
 * @param contextLength tokens to serve at most
 * @throws CrowdError model-unsupported (operator and node named), model-invalid
 */
export function planOnnx(source: Graph, config: OnnxConfig, contextLength: number): OnnxPlan {
  const canonical = canonicalise(source, config.headSize)
  const context = Math.min(contextLength, rotaryRows(canonical.graph))
  const graph = trimRotary(canonical.graph, context)
  const model = partition(graph, config.headSize)
  if (model.layers.length > LAYERS_MAX) {
    throw new CrowdError('model-unsupported', `The graph has ${model.layers.length} layers.`)
  }
  const { lookup, layers, head, hiddenSize, kvHeadCount, headSize } = model
  const forms = new Map<string, CopiedWeight['form']>()
  for (const name of canonical.transposed) forms.set(name, 'transposed')
  for (const name of canonical.shifted) forms.set(name, 'shifted')
  const options = { forms, table: lookup.constants }
  return {
    blocks: [
      planTable(lookup, options),
      ...layers.map((layer) => planBlock('layer', layer, { ...options, table: [] })),
      planBlock('head', head, options),
    ],
    hiddenSize,
    kvHeadCount,
    headSize,
    vocabSize: lookup.constants[0]?.dims[0] ?? 0,
    contextLength: context,
    dtype: dtypeOf(graph),
  }
}

function planTable(lookup: EmbeddingLookup, options: LayoutOptions): OnnxBlockPlan {
  const [values, ...rest] = lookup.constants
  // Rows are read in TypeScript, which takes scales as f32 and has no bf16.
  const wide = lookup.quantized === null ? (values?.type === 'bf16' ? [values] : []) : rest
  const forms = new Map(options.forms)
  for (const { name, type } of wide) {
    if (type === 'f16' || type === 'bf16') forms.set(name, 'widened')
  }
  const { weights, bytes, cuts } = layoutCopies(lookup.constants, { ...options, forms })
  const weightCount = (values?.dims[0] ?? 0) * lookup.columns
  return {
    kind: 'embedding',
    graph: null,
    weights,
    cuts,
    dataBytes: bytes,
    f32Bytes: weightCount * 4,
    weightCount,
    table: describeTable(
      lookup,
      weights.map(({ offset }) => offset),
    ),
  }
}

function describeTable(lookup: EmbeddingLookup, offsets: readonly number[]): EmbeddingTable {
  const [values] = lookup.constants
  const [offset = 0, scaleOffset = 0, zeroOffset] = offsets
  const shape = { rows: values?.dims[0] ?? 0, columns: lookup.columns, offset }
  if (lookup.quantized === null) return { dtype: values?.type === 'f16' ? 'f16' : 'f32', ...shape }
  return {
    dtype: 'packed',
    ...shape,
    ...lookup.quantized,
    scaleOffset,
    ...(zeroOffset === undefined ? {} : { zeroOffset }),
  }
}

function planBlock(kind: 'layer' | 'head', block: Graph, options: LayoutOptions): OnnxBlockPlan {
  // In the order of the table, so that the pieces are the embedding's.
  const tied = options.table.flatMap((constant) =>
    block.initializers.filter((entry) => sourceKey(entry) === sourceKey(constant)),
  )
  const others = block.initializers.filter((entry) => !tied.includes(entry))
  const layout = layoutCopies([...tied, ...others], options)
  const graph = writeOnnx({ ...block, initializers: layout.initializers })
  if (graph.length > PIECE_BYTES) {
    throw new CrowdError(
      'model-unsupported',
      `The graph of ${block.name} has ${graph.length} bytes.`,
    )
  }
  return {
    kind,
    graph,
    weights: layout.weights,
    cuts: layout.cuts,
    dataBytes: layout.bytes,
    f32Bytes: expandedBytes(block),
    weightCount: countWeights(block),
  }
}

/** Bytes of a block's constants as a provider without quantised products holds them. */
function expandedBytes(block: Graph): number {
  const packed = packedCounts(block)
  return block.initializers.reduce((sum, { name, type, dims, data }) => {
    const count = packed.get(name)
    if (count !== undefined) return sum + 4 * count
    if (type === 'f16' || type === 'bf16') return sum + 4 * elementCount(dims)
    return sum + (data.kind === 'inline' ? data.bytes.length : data.length)
  }, 0)
}

/** Numbers with at least two dimensions and those of block products; not their scales nor tables of angles. */
function countWeights(block: Graph): number {
  const packed = packedCounts(block)
  const scales = block.nodes.filter(isBlockProduct).flatMap(({ inputs }) => inputs.slice(2))
  const others = new Set([...scales, ...rotaryTables(block)])
  return block.initializers.reduce((sum, { name, dims }) => {
    const isWeight = dims.filter((size) => size > 1).length > 1 && !others.has(name)
    return sum + (packed.get(name) ?? (isWeight ? elementCount(dims) : 0))
  }, 0)
}

/** Weights behind each constant that a product reads in blocks. */
function packedCounts(block: Graph): Map<string, number> {
  return new Map(
    block.nodes
      .filter(isBlockProduct)
      .map(({ inputs, attributes }) => [
        inputs[1] ?? '',
        intOf(attributes['N'], 0) * intOf(attributes['K'], 0),
      ]),
  )
}

function isBlockProduct(node: GraphNode): boolean {
  return node.op === 'MatMulNBits' || node.op === 'MatMulBnb4'
}

/** How most of the weights are stored: in blocks, as bytes, or as plain numbers. */
function dtypeOf(graph: Graph): WeightDtype {
  if (graph.nodes.some((node) => isBlockProduct(node) || node.op === 'QMoE')) return 'q4'
  const bytes = { q8: 0, f16: 0, f32: 0 }
  for (const { type, dims, data } of graph.initializers) {
    const length = data.kind === 'inline' ? data.bytes.length : data.length
    if (type === 'u8' || type === 'i8') bytes.q8 += length
    else if (type === 'f16' || type === 'bf16') bytes.f16 += length
    else if (type === 'f32' && dims.length > 1) bytes.f32 += length
  }
  if (bytes.q8 > bytes.f16 + bytes.f32) return 'q8'
  return bytes.f16 > bytes.f32 ? 'f16' : 'f32'
}
