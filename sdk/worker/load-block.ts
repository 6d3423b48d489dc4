import { CrowdError } from '../core/errors.ts'
import type { Block, Manifest, Piece } from '../core/model/manifest.ts'
import type { StageRunner } from '../runtime/stage-runner.ts'
import type { ShardStore } from '../storage/shard-store.ts'
import type { FetchPieces } from './fetch-pieces.ts'

/** Takes a block from the store into the runner. @throws CrowdError */
export type LoadBlock = (manifest: Manifest, index: number, signal: AbortSignal) => Promise<void>

export function createLoadBlock(deps: {
  readonly runner: StageRunner
  readonly store: ShardStore
  readonly fetchPieces: FetchPieces
}): LoadBlock {
  /** One buffer of the whole block; a single piece is used as it is. */
  async function readData(block: Block, signal: AbortSignal): Promise<Uint8Array> {
    const [only] = block.data
    if (block.data.length === 1 && only !== undefined) return await readPiece(only, signal)
    const data = new Uint8Array(block.dataBytes)
    let offset = 0
    for (const piece of block.data) {
      data.set(await readPiece(piece, signal), offset)
      offset += piece.bytes
    }
    return data
  }

  /** A piece that turns out damaged on reading is fetched once more. */
  async function readPiece(piece: Piece, signal: AbortSignal): Promise<Uint8Array> {
    const found = await deps.store.read(piece.sha256)
    if (found !== null) return found
    await deps.fetchPieces([piece], { signal, onProgress: () => undefined })
    const again = await deps.store.read(piece.sha256)
    if (again === null)
      throw new CrowdError('storage-failed', `piece ${piece.sha256} was stored and can't be read`)
    return again
  }

  return async (manifest, index, signal) => {
    const block = manifest.blocks[index]
    if (block === undefined) throw new CrowdError('internal', `the runner wants block ${index}`)
    const graph = block.graph === null ? null : await readPiece(block.graph, signal)
    const data = await readData(block, signal)
    await deps.runner.loadBlock(index, { graph, data })
  }
}
