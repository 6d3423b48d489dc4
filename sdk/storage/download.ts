import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import { FETCH_TRIES } from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import { fetchAll } from './fetch-all.ts'
import { fetchPiece, type FetchPieceDeps } from './fetch-piece.ts'
import type { HashBytes } from './hash.ts'
import type { PeerPieces } from './peer-pieces.ts'
import type { ShardStore } from './shard-store.ts'
import type { Later } from './stall-limit.ts'

/** Somewhere that pieces can be had by hash: the host, a file server, a hub. */
export type PieceSource = {
  readonly name: string
  urlOf(piece: Piece): string
}

/** A directory whose files are named by their hash. `pieceSource('host', '/models/a/pieces/')` */
export function pieceSource(name: string, baseUrl: string): PieceSource {
  return { name, urlOf: (piece) => `${baseUrl}${piece.sha256}` }
}

export type DownloadProgress = {
  /** Bytes that came over the network in this call. */
  readonly fetchedBytes: number
  /** Those of them that came from peers. */
  readonly peerBytes: number
  /** Bytes of the wanted pieces that are stored by now. */
  readonly storedBytes: number
  readonly totalBytes: number
}

export type FetchPiecesRequest = {
  readonly pieces: readonly Piece[]
  readonly store: ShardStore
  /** At least one; a failed piece is tried from the next one. */
  readonly sources: readonly PieceSource[]
  /** Asked first for what they have. */
  readonly peers?: PeerPieces
  readonly fetch: typeof globalThis.fetch
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: DownloadProgress) => void
  /** The store is this device's alone: where room is short, pieces that are not wanted may go. */
  readonly mayEvict?: boolean
}

/** How waiting, jitter and hashing are done; replaced in tests. */
export type DownloadTiming = {
  /** Rejects when aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly stallMs?: number
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
  readonly later?: Later
  readonly hash?: HashBytes
}

const BACKOFF_MS = 300
const BACKOFF_MAX_MS = 15_000

/**
 * Brings pieces into the store, each checked against its length and hash; what is stored already costs no
 * request. Returns the bytes that were fetched.
 *
 *     await fetchPieces({ pieces: blockPieces(block), store, sources: [pieceSource('host', url)], fetch })
 *
 * @throws CrowdError storage-full (before anything is fetched), piece-unavailable, piece-corrupt, aborted,
 * storage-failed
 */
export async function fetchPieces(
  request: FetchPiecesRequest,
  timing: DownloadTiming = SYSTEM_TIMING,
): Promise<{ readonly fetchedBytes: number }> {
  const { store, sources, onProgress } = request
  if (sources.length === 0)
    throw new CrowdError('piece-unavailable', 'there is no source of pieces')
  const wanted = distinct(request.pieces)
  const missing = await missingPieces(store, wanted)
  const missingBytes = sumBytes(missing)
  const heldBytes = sumBytes(wanted) - missingBytes
  await checkSpace(store, missingBytes, request.mayEvict === true ? { wanted, heldBytes } : null)

  // One failure stops the others.
  const stop = new AbortController()
  const signal =
    request.signal === undefined ? stop.signal : AbortSignal.any([request.signal, stop.signal])
  const totalBytes = sumBytes(wanted)
  let storedBytes = totalBytes - missingBytes
  let fetchedBytes = 0
  let peerBytes = 0
  const report = (): void => onProgress?.({ fetchedBytes, peerBytes, storedBytes, totalBytes })
  const onBytes = (count: number): void => {
    fetchedBytes += count
    report()
  }
  const { stallMs, later, hash } = timing
  const deps = { fetch: request.fetch, signal, onBytes, stallMs, later, hash }

  report()
  try {
    await fetchAll(missing, {
      peers: request.peers ?? null,
      fromHost: (piece) => withRetries(piece, sources, { ...deps, timing }),
      async keep(piece, bytes) {
        await store.write(piece.sha256, bytes)
        storedBytes += piece.bytes
        report()
      },
      onPeerBytes(count) {
        peerBytes += count
        onBytes(count)
      },
      signal,
      now: timing.now ?? (() => performance.now()),
      wait: timing.wait,
      hash,
    })
  } catch (thrown) {
    stop.abort()
    if (request.signal?.aborted === true) throw abortedError()
    throw thrown
  }
  return { fetchedBytes }
}

/** One piece, from source after source, with growing pauses. */
async function withRetries(
  piece: Piece,
  sources: readonly PieceSource[],
  deps: FetchPieceDeps & { readonly timing: DownloadTiming },
): Promise<Uint8Array> {
  const { timing, signal } = deps
  const usable = [...sources]
  let last: CrowdError | null = null
  let isSuspect = false
  for (let attempt = 0; attempt < FETCH_TRIES; attempt++) {
    const source = usable[attempt % usable.length]
    if (source === undefined) break
    const result = await fetchPiece(piece, source.urlOf(piece), { ...deps, fresh: isSuspect })
    if (result.kind === 'bytes') return result.bytes
    last = new CrowdError(result.code, `${source.name}: ${result.reason}`)
    // A bad answer may sit in the browser's cache: the next try goes past it.
    isSuspect ||= result.code === 'piece-corrupt'
    if (!result.retry) usable.splice(usable.indexOf(source), 1)
    if (usable.length === 0 || attempt === FETCH_TRIES - 1) break
    const backoff =
      Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** attempt) * (0.5 + timing.random() / 2)
    const asked = Math.min(BACKOFF_MAX_MS, result.retryAfterMs ?? 0)
    await timing.wait(Math.max(backoff, asked), signal)
  }
  throw last ?? new CrowdError('piece-unavailable', 'no source has this piece')
}

async function missingPieces(store: ShardStore, pieces: readonly Piece[]): Promise<Piece[]> {
  const missing: Piece[] = []
  for (const piece of pieces) if (!(await store.has(piece.sha256))) missing.push(piece)
  return missing
}

/** @throws CrowdError storage-full */
async function checkSpace(
  store: ShardStore,
  neededBytes: number,
  evict: { readonly wanted: readonly Piece[]; readonly heldBytes: number } | null,
): Promise<void> {
  if (neededBytes === 0) return
  const { freeBytes, usedBytes } = await store.usage()
  if (freeBytes === null || freeBytes >= neededBytes) return
  // Nothing is deleted where that would not do.
  if (evict !== null && freeBytes + usedBytes - evict.heldBytes >= neededBytes) {
    if (await deleteOthers(store, evict.wanted, neededBytes)) return
  }
  throw new CrowdError(
    'storage-full',
    `${megabytes(neededBytes)} are to be stored, but only ${megabytes(freeBytes)} are free: ` +
      `${megabytes(neededBytes - freeBytes)} (${neededBytes - freeBytes} bytes) are missing`,
  )
}

/** Deletes pieces of former assignments and models, one by one; true once there is room. */
async function deleteOthers(
  store: ShardStore,
  wanted: readonly Piece[],
  neededBytes: number,
): Promise<boolean> {
  const kept = new Set(wanted.map((piece) => piece.sha256))
  for (const hash of await store.list()) {
    if (kept.has(hash)) continue
    await store.delete(hash)
    const { freeBytes } = await store.usage()
    if (freeBytes === null || freeBytes >= neededBytes) return true
  }
  return false
}

function distinct(pieces: readonly Piece[]): Piece[] {
  return [...new Map<PieceHash, Piece>(pieces.map((piece) => [piece.sha256, piece])).values()]
}

function sumBytes(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes, 0)
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

export function abortedError(): CrowdError {
  return new CrowdError('aborted', 'the download was stopped')
}

export const SYSTEM_TIMING: DownloadTiming = {
  random: Math.random,
  wait: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer)
        reject(abortedError())
      }
      if (signal.aborted) {
        reject(abortedError())
        return
      }
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', stop)
        resolve()
      }, ms)
      signal.addEventListener('abort', stop, { once: true })
    }),
}
