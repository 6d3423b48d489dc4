import type { ModelId } from '../../sdk/core/ids.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { TestModel } from './models.ts'

/** What stages need to know of a model that lies in memory: it has no pieces. */
export function manifestOf({ decoder, dtype, plans }: TestModel): Manifest {
  const { hiddenSize, headCount, kvHeadCount, headSize, vocabSize } = decoder
  const layerCount = decoder.layers.length
  return {
    format: 1,
    // Cast: stays in this test.
    id: 'law' as ModelId,
    revision: 'law',
    architecture: decoder.architecture,
    dtype,
    ...{ hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize },
    contextLength: decoder.contextLength,
    eosTokenIds: decoder.eosTokenIds,
    blocks: plans.map(({ kind, dataBytes, f32Bytes, table }) => ({
      kind,
      graph: null,
      data: [],
      dataBytes,
      f32Bytes,
      ...(table ? { table } : {}),
    })),
    files: {},
  }
}
