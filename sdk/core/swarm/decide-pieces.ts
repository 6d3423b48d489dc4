import type { PeerId, PieceHash } from '../ids.ts'
import {
  PIECE_ACCUSERS,
  PIECE_LINK_MS,
  PIECE_READERS,
  PIECE_RETRY_MS,
  PIECE_SEEK_MS,
  PIECE_SOURCES,
  PIECE_WORTH_BYTES,
} from '../limits.ts'
import { blockPieces, type Piece } from '../model/manifest.ts'
import type { Decision } from './events.ts'
import type { PairState, PeerState, SwarmState } from './state.ts'
import { isActive } from './views.ts'

/** Devices that fetch are linked with some that have what they lack; the links end with the fetch. */
export function decidePieces(state: SwarmState, now: number): readonly Decision[] {
  const links = pieceLinks(state)
  const closed = links.flatMap((pair): Decision[] => {
    const reason = whyClose(state, pair, now)
    return reason === null ? [] : [{ kind: 'pair-closed', pair: pair.pair, reason }]
  })
  if (closed.length > 0) return closed
  // Many devices and pieces take a while to compare, and this is asked for each token.
  if (now - state.sourcesSoughtAt < PIECE_SEEK_MS) return []
  const fetchers = fetchersInNeed(state, links, now)
  for (const peer of fetchers) {
    const [source] = newSources(state, peer, now)
    if (source !== undefined)
      return [{ kind: 'pair-opened', from: peer, to: source, purpose: 'pieces' }]
  }
  return fetchers.length === 0 ? [] : [{ kind: 'sources-sought' }]
}

/** Whoever has fewest sources first, so that one is there for each before any has several. */
function fetchersInNeed(state: SwarmState, links: readonly PairState[], now: number): PeerId[] {
  return [...state.peers.values()]
    .filter(isFetching)
    .map(({ peer }) => ({
      peer,
      live: links.filter((pair) => pair.from === peer && isLive(pair, now)).length,
    }))
    .filter(({ live }) => live < PIECE_SOURCES)
    .sort((a, b) => a.live - b.live)
    .map(({ peer }) => peer)
}

/** Whom a device that fetches is to be linked with besides those that it is linked with, the best first. */
export function newSources(state: SwarmState, peer: PeerId, now: number): PeerId[] {
  const fetcher = state.peers.get(peer)
  if (fetcher === undefined || !isFetching(fetcher)) return []
  const links = pieceLinks(state)
  const own = links.filter((pair) => pair.from === peer)
  const live = own.filter((pair) => isLive(pair, now))
  if (live.length >= PIECE_SOURCES) return []
  const readers = (source: PeerId): number =>
    links.filter((pair) => pair.to === source && isLive(pair, now)).length
  const possible = [...state.peers.values()].filter(
    (source) =>
      gives(source, peer) &&
      own.every((pair) => pair.to !== source.peer) &&
      readers(source.peer) < PIECE_READERS,
  )
  const missing = possible.length === 0 ? [] : missingPieces(state, fetcher)
  const least = Math.min(PIECE_WORTH_BYTES, bytesOf(missing))
  if (least === 0) return []
  const candidates = possible.filter((source) => {
    const has = storedOf(source)
    return bytesOf(missing.filter(({ sha256 }) => has.has(sha256))) >= least
  })
  const stored = live.map((pair) => storedOf(state.peers.get(pair.to)))
  const chosen: PeerId[] = []
  while (live.length + chosen.length < PIECE_SOURCES) {
    const best = bestOf(candidates, (source) => {
      const value = worth(missing, storedOf(source), stored)
      return value / (1 + readers(source.peer) + sessionsOf(state, source.peer))
    })
    if (best === null) break
    candidates.splice(candidates.indexOf(best), 1)
    chosen.push(best.peer)
    stored.push(storedOf(best))
  }
  return chosen
}

function pieceLinks(state: SwarmState): PairState[] {
  return [...state.pairs.values()].filter(({ purpose }) => purpose === 'pieces')
}

function whyClose(state: SwarmState, pair: PairState, now: number): string | null {
  const fetcher = state.peers.get(pair.from)
  if (fetcher === undefined || !isFetching(fetcher)) return 'the pieces are there'
  // One that failed stays in mind for a while, so that another source gets its turn.
  if (pair.state !== 'open' && now - pair.since > PIECE_RETRY_MS) return 'it did not come about'
  return null
}

function isFetching({ droppedAt, pledged, sharesPieces, assignment }: PeerState): boolean {
  if (droppedAt !== null || !pledged || !sharesPieces) return false
  // Number 0: it came back and is told again.
  if (assignment === null || assignment.range === null || assignment.number === 0) return false
  return assignment.state === 'ordered' || assignment.state === 'fetching'
}

/** It can give, may be disturbed, and is believed. */
function gives(source: PeerState, to: PeerId): boolean {
  const { pledge, accusers } = source
  if (source.peer === to || source.droppedAt !== null || !source.pledged) return false
  if (!source.sharesPieces || source.setAside !== null || source.silence !== null) return false
  if (pledge === null || pledge.hidden || pledge.memoryBytes === 0) return false
  return accusers.length < PIECE_ACCUSERS && !accusers.includes(to)
}

function isLive(pair: PairState, now: number): boolean {
  return pair.state === 'open' || (pair.state === 'opening' && now - pair.since <= PIECE_LINK_MS)
}

function missingPieces(state: SwarmState, fetcher: PeerState): Piece[] {
  const range = fetcher.assignment?.range
  if (!range) return []
  const stored = storedOf(fetcher)
  const pieces = state.model.blocks.slice(range.start, range.end).flatMap(blockPieces)
  return [...new Map(pieces.map((piece) => [piece.sha256, piece])).values()].filter(
    ({ sha256 }) => !stored.has(sha256),
  )
}

const NOTHING: ReadonlySet<PieceHash> = new Set()

function storedOf(peer: PeerState | undefined): ReadonlySet<PieceHash> {
  return peer?.pledge?.cached ?? NOTHING
}

function bytesOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** Bytes that a source could give; what nobody else gives counts most. */
function worth(
  missing: readonly Piece[],
  stored: ReadonlySet<PieceHash>,
  others: readonly ReadonlySet<PieceHash>[],
): number {
  let bytes = 0
  for (const piece of missing) {
    if (!stored.has(piece.sha256)) continue
    bytes += others.some((other) => other.has(piece.sha256)) ? piece.bytes / 4 : piece.bytes
  }
  return bytes
}

/** null: none is worth anything. */
function bestOf(candidates: readonly PeerState[], rate: (one: PeerState) => number) {
  let best: PeerState | null = null
  let bestRate = 0
  for (const candidate of candidates) {
    const found = rate(candidate)
    if (found > bestRate) [best, bestRate] = [candidate, found]
  }
  return best
}

function sessionsOf(state: SwarmState, peer: PeerId): number {
  return [...state.requests.values()].filter(
    (request) => isActive(request) && request.stages.some((stage) => stage.peer === peer),
  ).length
}
