import type { BlockRange } from './block-range.ts'
import type { Block, Manifest } from './manifest.ts'
import { blockPieces, kvBytesPerToken } from './manifest.ts'
import type { Provider } from './provider.ts'

/**
 * Memory that a block's weights take once loaded. WASM holds f32 only; elsewhere 4-bit weights stay packed
 * and half weights are widened. The embedding is read row by row from the bytes as they came.
 */
export function loadedBytes(block: Block, dtype: Manifest['dtype'], provider: Provider): number {
  if (block.kind === 'embedding') return block.dataBytes
  return provider === 'wasm' || dtype === 'f16' ? block.f32Bytes : block.dataBytes
}

/** Memory of a stage: weights, and the caches of `sessions` sessions at full context. Bytes. */
export function stageBytes(
  manifest: Manifest,
  range: BlockRange,
  provider: Provider,
  sessions: number,
): number {
  const blocks = manifest.blocks.slice(range.start, range.end)
  const weights = blocks.reduce(
    (sum, block) => sum + loadedBytes(block, manifest.dtype, provider),
    0,
  )
  const layers = blocks.filter((block) => block.kind === 'layer').length
  return weights + sessions * layers * kvBytesPerToken(manifest) * manifest.contextLength
}

/** Bytes that a stage downloads; pieces that several of its blocks share are counted once. */
export function downloadBytes(manifest: Manifest, range: BlockRange): number {
  const pieces = manifest.blocks.slice(range.start, range.end).flatMap(blockPieces)
  const unique = new Map(pieces.map((piece) => [piece.sha256, piece.bytes]))
  return [...unique.values()].reduce((sum, bytes) => sum + bytes, 0)
}
