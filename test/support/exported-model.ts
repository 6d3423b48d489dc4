import type { ModelId } from '../../sdk/core/ids.ts'
import type { Graph, Initializer } from '../../sdk/core/graph/graph.ts'
import { readOnnx } from '../../sdk/core/graph/onnx-reader.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { copiedData, type ReadData } from '../../sdk/core/model/onnx/copy-weights.ts'
import { parseOnnxConfig } from '../../sdk/core/model/onnx/onnx-config.ts'
import { planOnnx } from '../../sdk/core/model/onnx/plan-onnx.ts'
import type { BlockBytes } from '../../sdk/runtime/stage-runner.ts'

/** Shapes and axes have to be in the graph itself. */
const INLINE_MAX_BYTES = 1024

/** An exporter's files in memory, cut as importing cuts them; `data` holds what lies outside the graph. */
export function cutExport(
  config: unknown,
  file: Uint8Array<ArrayBuffer>,
  data: Uint8Array<ArrayBuffer>,
): { readonly manifest: Manifest; readonly readBlock: (block: number) => Promise<BlockBytes> } {
  const read: ReadData = (place, offset, length) => {
    if (place.kind === 'inline') return Promise.resolve(place.bytes.slice(offset, offset + length))
    const from = place.offset + offset
    return Promise.resolve(data.slice(from, from + length))
  }
  const parsed = parseOnnxConfig(config)
  const plan = planOnnx(withSmallInside(readOnnx(file), data), parsed, parsed.contextLength)
  const { hiddenSize, kvHeadCount, headSize, vocabSize, dtype, contextLength } = plan
  const { architecture, headCount, eosTokenIds } = parsed
  const layerCount = plan.blocks.length - 2
  return {
    manifest: {
      format: 1,
      // Cast: stays in this test.
      id: 'law' as ModelId,
      revision: 'law',
      ...{ architecture, dtype, contextLength, eosTokenIds },
      ...{ hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize },
      blocks: plan.blocks.map(({ kind, dataBytes, f32Bytes, table }) => ({
        kind,
        graph: null,
        data: [],
        dataBytes,
        f32Bytes,
        ...(table ? { table } : {}),
      })),
      files: {},
    },
    readBlock: async (index) => {
      const block = plan.blocks[index]
      if (!block) throw new Error(`no block ${index}`)
      const bytes = new Uint8Array(block.dataBytes)
      let at = 0
      for await (const run of copiedData(block.weights, read)) {
        bytes.set(run, at)
        at += run.length
      }
      return { graph: block.graph?.slice() ?? null, data: bytes }
    },
  }
}

function withSmallInside(graph: Graph, bytes: Uint8Array<ArrayBuffer>): Graph {
  const inside = (entry: Initializer): Initializer => {
    const { data } = entry
    if (data.kind === 'inline' || data.length > INLINE_MAX_BYTES) return entry
    const copy = bytes.slice(data.offset, data.offset + data.length)
    return { ...entry, data: { kind: 'inline', bytes: copy } }
  }
  return { ...graph, initializers: graph.initializers.map(inside) }
}
