import { CrowdError } from '../errors.ts'
import { pruned, type Graph, type GraphNode, type Initializer } from '../graph/graph.ts'
import { readOnnx } from '../graph/onnx-reader.ts'
import { writeOnnx } from '../graph/onnx-writer.ts'
import { Q4_BLOCK } from '../tensor/quantize-q4.ts'
import { expandQ4, q4Shape } from './expand-q4.ts'
import { foldConstants, type ReadConstant } from './fold-constants.ts'
import { DATA_LOCATION } from './graph-builder.ts'
import { returnNewRows } from './kv-delta.ts'
import type { Provider } from './provider.ts'

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
  const isLayer = graph.outputs.some((output) => output.name === 'present.key')
  const lowered = lowerGraph(graph, createReader(block.data), { provider, caches })
  return {
    ...externalize(lowered, block.data),
    kv: isLayer ? caches : 'none',
  }
}

/** The passes, in order. */
function lowerGraph(
  graph: Graph,
  read: ReadConstant,
  { provider, caches }: { provider: Provider; caches: 'delta' | 'shared' },
): Graph {
  const folded = foldConstants(graph, read)
  const expanded = expandQ4(folded, read, (node) => needsExpansion(node, provider))
  const isLayer = graph.outputs.some((output) => output.name === 'present.key')
  const delta = isLayer && caches === 'delta' ? returnNewRows(expanded) : expanded
  return pruned(delta)
}

/** WebGPU's 4-bit kernel was only ever measured on whole blocks. */
function needsExpansion(node: GraphNode, provider: Provider): boolean {
  if (provider === 'wasm') return true
  return provider === 'webgpu' && (q4Shape(node)?.columns ?? 0) % Q4_BLOCK !== 0
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
