import type { Block, Piece } from '../core/model/manifest.ts'
import type { ShardStore } from './shard-store.ts'

export type BlockRead =
  | { readonly kind: 'whole'; readonly graph: Uint8Array | null; readonly data: Uint8Array }
  /** Pieces that are not there (any more): fetch them, then read again. */
  | { readonly kind: 'missing'; readonly pieces: readonly Piece[] }

/** A block's bytes from the store, its pieces joined; what a StageRunner's loadBlock takes. */
export async function readBlock(store: ShardStore, block: Block): Promise<BlockRead> {
  const missing: Piece[] = []
  const graph = block.graph === null ? null : await store.read(block.graph.sha256)
  if (block.graph !== null && graph === null) missing.push(block.graph)
  const data = new Uint8Array(block.dataBytes)
  let offset = 0
  for (const piece of block.data) {
    const bytes = await store.read(piece.sha256)
    if (bytes === null) missing.push(piece)
    // The manifest's sums were checked when it was parsed; a lying one throws here instead of overrunning.
    else data.set(bytes, offset)
    offset += piece.bytes
  }
  if (missing.length > 0) return { kind: 'missing', pieces: missing }
  return { kind: 'whole', graph, data }
}
