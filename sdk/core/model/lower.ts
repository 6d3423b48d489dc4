import { CrowdError } from '../errors.ts'
import { pruned, type Graph, type GraphNode, type Initializer } from '../graph/graph.ts'
import { readOnnx } from '../graph/onnx-reader.ts'
import { writeOnnx } from '../graph/onnx-writer.ts'
import { isUncappedOnGpu, nameCpuNodes } from './cpu-nodes.ts'
import { blockShape, expandQ4 } from './expand-q4.ts'
import { foldConstants, type ReadConstant } from './fold-constants.ts'
import { DATA_LOCATION, INT8_ACTIVATIONS } from './graph-builder.ts'
import { returnNewRows } from './kv-delta.ts'
import type { Provider } from './provider.ts'
import { splitOffsets } from './split-offsets.ts'

/** What `InferenceSession.create(model, { externalData })` takes. */
export type LoweredBlock = {
  readonly model: Uint8Array<ArrayBuffer>
  readonly externalData: { path: string; data: Uint8Array }[]
  /**
   * How the caches move. `delta`: inputs `past.key`/`past.value` [1, KV, P, D] with P at least the total
   * length (rows after the position are ignored), outputs `new.key`/`new.value` [1, KV, S, D], to be
   * written into the caller's buffer. `shared`: outputs `present.key`/`present.value` with the shape of
   * the past, meant to be the same gpu-buffer. `none`: a head.
   */
  readonly kv: 'delta' | 'shared' | 'none'
  /** Names of nodes that must not run on the GPU. */
  readonly cpuNodes: readonly string[]
}

/** Constants below this stay inside the model: ORT wants shapes and axes there. */
const INLINE_MAX_BYTES = 1024

/**
 * Brings a block of the canonical dialect into the form that a provider runs well. The bytes of `data` may
 * be referenced by the result; drop both after the session was created. `caches`: WebGPU takes `delta` too, where its buffers
 * can't be had from outside (Node).
 * @example const { model, externalData } = lowerBlock(block, 'wasm')
 * @throws CrowdError model-invalid, model-unsupported
 */
export function lowerBlock(
  block: { readonly graph: Uint8Array; readonly data: Uint8Array },
  provider: Provider,
  caches: 'delta' | 'shared' = provider === 'webgpu' ? 'shared' : 'delta',
): LoweredBlock {
  const graph = readOnnx(block.graph)
  checkRanges(graph, block.data)
  const kv = cachesOf(graph, caches)
  const lowered = lowerGraph(graph, createReader(block.data), { provider, kv })
  const { graph: named, names } =
    provider === 'webgpu' ? nameCpuNodes(lowered) : { graph: lowered, names: [] }
  return { ...externalize(named, block.data), kv, cpuNodes: names }
}

/** The passes, in order. */
function lowerGraph(
  graph: Graph,
  read: ReadConstant,
  { provider, kv }: { provider: Provider; kv: LoweredBlock['kv'] },
): Graph {
  const folded = foldConstants(graph, read)
  const expanded = expandQ4(folded, read, (node) => needsExpansion(node, provider))
  const split = splitOffsets(expanded, read)
  return pruned(kv === 'delta' ? returnNewRows(split) : split)
}

/**
 * WebGPU's kernel was only ever measured with 4 and 8 bits and on whole blocks. The CPU's for 8-bit weights and f32
 * activations is a hundred times slower than the product in f32.
 */
function needsExpansion(node: GraphNode, provider: Provider): boolean {
  if (provider === 'wasm') return true
  const shape = blockShape(node)
  const accuracy = node.attributes['accuracy_level']
  const isExact = accuracy?.kind !== 'int' || accuracy.value !== INT8_ACTIVATIONS
  if (provider === 'cpu') return node.op === 'MatMulNBits' && shape?.bits === 8 && isExact
  if (provider !== 'webgpu' || shape === null) return false
  const { columns, bits, blockSize } = shape
  return node.op === 'MatMulBnb4' || bits === 2 || columns % blockSize !== 0
}

/**
 * Only GroupQueryAttention on a GPU writes into the buffer that it reads; other attention gives a longer one, and on the
 * CPU a GPU's buffer would have to come and go.
 */
function cachesOf(graph: Graph, wanted: 'delta' | 'shared'): LoweredBlock['kv'] {
  const maker = graph.nodes.find((node) => node.outputs.includes('present.key'))
  if (!maker) return 'none'
  return maker.op === 'GroupQueryAttention' && !isUncappedOnGpu(maker) ? wanted : 'delta'
}

/** Reads constants from the graph or from the block's data. */
function createReader(data: Uint8Array): ReadConstant {
  return ({ data: place }) =>
    place.kind === 'inline' ? place.bytes : data.subarray(place.offset, place.offset + place.length)
}

function checkRanges(graph: Graph, data: Uint8Array): void {
  for (const { name, data: place } of graph.initializers) {
    if (place.kind === 'inline') continue
    if (place.location !== DATA_LOCATION) {
      throw new CrowdError('model-invalid', `The weight ${name} lies in ${place.location}.`)
    }
    if (place.offset + place.length > data.length) {
      throw new CrowdError(
        'model-invalid',
        `The weight ${name} ends at byte ${place.offset + place.length} of ${data.length}.`,
      )
    }
  }
}

/** Moves what the passes made out of the model: each large constant becomes a file of its own, uncopied. */
function externalize(graph: Graph, data: Uint8Array): Pick<LoweredBlock, 'model' | 'externalData'> {
  const externalData: { path: string; data: Uint8Array }[] = []
  const initializers = graph.initializers.map((entry): Initializer => {
    if (entry.data.kind !== 'inline' || entry.data.bytes.length < INLINE_MAX_BYTES) return entry
    const path = `made.${externalData.length}`
    const { bytes } = entry.data
    externalData.push({ path, data: bytes })
    const place = { kind: 'external', location: path, offset: 0, length: bytes.length } as const
    return { ...entry, data: place }
  })
  if (initializers.some(({ data: place }) => isIn(place, DATA_LOCATION))) {
    externalData.push({ path: DATA_LOCATION, data })
  }
  return { model: writeOnnx({ ...graph, initializers }), externalData }
}

function isIn(place: Initializer['data'], location: string): boolean {
  return place.kind === 'external' && place.location === location
}
