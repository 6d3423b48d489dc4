import type { InferenceSession } from 'onnxruntime-common'
import { embeddingRows } from '../../sdk/core/model/embedding-table.ts'
import { lowerBlock } from '../../sdk/core/model/lower.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { BlockBytes } from '../../sdk/runtime/stage-runner.ts'
import { createCache, floatsOf, type Decoder, type OrtModule } from './chained-blocks.ts'

/** The blocks of an imported model one after another, all logits [S, V] of each step out. */
export async function openBlocks(
  ort: OrtModule,
  manifest: Manifest,
  read: (block: number) => Promise<BlockBytes>,
  provider: 'cpu' | 'wasm',
): Promise<Decoder> {
  const table = manifest.blocks[0]?.table
  if (!table) throw new Error('the embedding has no table')
  const { data: tableData } = await read(0)
  const sessions: InferenceSession[] = []
  for (let block = 1; block < manifest.blocks.length; block++) {
    const { graph, data } = await read(block)
    if (graph === null) throw new Error(`block ${block} has no graph`)
    const { model, externalData } = lowerBlock({ graph, data }, provider)
    sessions.push(
      await ort.InferenceSession.create(model, {
        executionProviders: [provider],
        intraOpNumThreads: 1,
        logSeverityLevel: 3,
        externalData,
      }),
    )
  }
  const caches = Array.from({ length: manifest.layerCount }, () => createCache(ort, manifest))
  return {
    step: async (position, ids) => {
      let hidden: Float32Array = embeddingRows(table, tableData, Int32Array.from(ids))
      for (const [i, session] of sessions.entries()) {
        const input = new ort.Tensor('float32', hidden, [1, ids.length, manifest.hiddenSize])
        const cache = caches[i]
        const outputs = await session.run({
          hidden: input,
          ...cache?.feeds(position, ids.length),
        })
        cache?.append(outputs, position, ids.length)
        hidden = floatsOf(outputs[cache ? 'hidden_out' : 'logits'])
      }
      return hidden
    },
    close: async () => {
      await Promise.all(sessions.map((session) => session.release()))
    },
  }
}
