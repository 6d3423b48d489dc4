import { CrowdError } from '../errors.ts'
import type { EmbeddingTable } from './manifest.ts'

/**
 * Rows of the embedding as f32 [ids.length, columns], from the data bytes of block 0.
 * @throws CrowdError bad-request for an id outside the vocabulary, model-invalid for short data
 */
export function embeddingRows(
  table: EmbeddingTable,
  data: Uint8Array,
  ids: Int32Array,
): Float32Array<ArrayBuffer> {
  throw new CrowdError('internal', `rows ${table.rows} ${data.length} ${ids.length}`)
}
