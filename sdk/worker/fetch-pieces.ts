import type { Piece } from '../core/model/manifest.ts'
import type { PeerPieces } from '../storage/peer-pieces.ts'

/** Brings pieces into the store; those that are there cost nothing. @throws CrowdError piece-unavailable, storage-full, aborted */
export type FetchPieces = (
  pieces: readonly Piece[],
  options: {
    signal: AbortSignal
    onProgress(doneBytes: number, fetchedBytes: number, peerBytes: number): void
    /** They are all that the device has to hold. */
    complete?: boolean
    /** Asked before the host. */
    peers?: PeerPieces
  },
) => Promise<void>
