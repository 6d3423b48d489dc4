import type { PieceHash } from '../core/ids.ts'
import type { Piece } from '../core/model/manifest.ts'

/** A peer that holds pieces, over a link of its own. */
export interface PeerSource {
  /** For people. */
  readonly name: string
  has(hash: PieceHash): boolean
  /** Takes one more request now. */
  readonly free: boolean
  /** The bytes as they came, of the piece's length and not checked against its hash. Never rejects. */
  fetch(piece: Piece, deps: PeerFetchDeps): Promise<PeerAnswer>
  /** It sent wrong bytes: it is asked no more, and reported. */
  reject(reason: string): void
}

export type PeerFetchDeps = {
  readonly signal: AbortSignal
  /** Bytes as they come. */
  readonly onBytes: (count: number) => void
}

/** A failure needs no retry here: the source is then gone, busy for a while, or known not to have the piece. */
export type PeerAnswer =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'failed'; readonly reason: string }

/** The peers that pieces may be fetched from, as links to them come and go. */
export interface PeerPieces {
  /** True while there is a link that may still come up. */
  readonly awaited: boolean
  list(): readonly PeerSource[]
  /** Hears of whatever changes an answer of the others. Returns how to hear no more. */
  onChange(handler: () => void): () => void
}
