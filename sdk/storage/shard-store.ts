import type { PieceHash } from '../core/ids.ts'

export type StoreUsage = {
  /** Bytes of pieces held. */
  readonly usedBytes: number
  /** Bytes that may still be stored, as far as the platform tells; null = unknown. */
  readonly freeBytes: number | null
  /** False where the pieces go with the tab (private window, blocked storage). */
  readonly persistent: boolean
}

/**
 * PORT. Pieces by hash. A piece exists only once its hash was checked and its write was committed; a
 * partial write is never visible. Every call ends within STORAGE_CALL_MS.
 */
export interface ShardStore {
  has(hash: PieceHash): Promise<boolean>
  /** The bytes, checked against the hash again; a damaged piece is deleted and null is returned. */
  read(hash: PieceHash): Promise<Uint8Array | null>
  /** @throws CrowdError piece-corrupt, storage-full, storage-failed */
  write(hash: PieceHash, bytes: Uint8Array): Promise<void>
  delete(hash: PieceHash): Promise<void>
  list(): Promise<PieceHash[]>
  usage(): Promise<StoreUsage>
}
