import { CrowdError, toCrowdError } from '../core/errors.ts'
import { PIECE_FLOOR_MS, PIECE_HELP_MS, PIECE_LINK_WAIT_MS } from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import { SINGLE_FILE_MAX_BYTES } from './fetch-piece.ts'
import { hashBytes, type HashBytes } from './hash.ts'
import type { PeerPieces, PeerSource } from './peer-pieces.ts'

export type FetchAllDeps = {
  /** null: the host alone. */
  readonly peers: PeerPieces | null
  /** Checked bytes, with retries. @throws CrowdError piece-unavailable, piece-corrupt, aborted */
  fromHost(piece: Piece): Promise<Uint8Array>
  /** Stores a checked piece. @throws CrowdError */
  keep(piece: Piece, bytes: Uint8Array): Promise<void>
  /** Bytes as they come from peers. */
  onPeerBytes(count: number): void
  readonly signal: AbortSignal
  now(): number
  /** Rejects when aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  readonly hash?: HashBytes | undefined
}

/** Pieces of 8 MiB: three at once fill a line without holding much memory. */
const FROM_HOST_AT_ONCE = 3
/** From peers together: two of each of three. */
const FROM_PEERS_AT_ONCE = 6
/** So that 8 MiB each fit a phone; the host has its place beside six of peers. */
const AT_ONCE = 7
/** How often time alone changes who is asked. */
const LOOK_MS = 1_000

/**
 * Fetches each piece from where it is best had: from peers that hold it, otherwise from the host. The host is
 * asked as well where links don't come up in time, and for a part of what peers would take long for.
 * @throws CrowdError of the first failure that no other source makes good
 */
export function fetchAll(pieces: readonly Piece[], deps: FetchAllDeps): Promise<void> {
  const { peers, signal, hash: hashOf = hashBytes } = deps
  const pending = new Set(pieces)
  const host = { running: 0, failed: false }
  const startedAt = deps.now()
  const pace = { bytes: 0, since: null as number | null }
  let running = 0
  let over = false

  return new Promise((resolve, reject) => {
    const stopListening = peers?.onChange(pump)
    signal.addEventListener('abort', onAbort, { once: true })

    function end(settle: () => void): void {
      if (over) return
      over = true
      stopListening?.()
      signal.removeEventListener('abort', onAbort)
      settle()
    }

    function fail(thrown: unknown): void {
      end(() => reject(toCrowdError(thrown)))
    }

    function onAbort(): void {
      fail(new CrowdError('aborted', 'the download was stopped'))
    }

    function pump(): void {
      if (over) return
      if (pending.size === 0 && running === 0) {
        end(resolve)
        return
      }
      const sources = peers?.list() ?? []
      if (sources.length > 0) pace.since ??= deps.now()
      // Round after round, so that each source has one before any has two.
      for (let went = true; went;) {
        went = false
        for (const source of sources) went = askPeer(source, sources) || went
      }
      while (askHost(sources));
    }

    function askPeer(source: PeerSource, sources: readonly PeerSource[]): boolean {
      if (running >= AT_ONCE || running - host.running >= FROM_PEERS_AT_ONCE) return false
      if (!source.free) return false
      const piece = rarest(pending, source, sources)
      if (piece === null) return false
      run(piece, fromPeer(piece, source))
      return true
    }

    function askHost(sources: readonly PeerSource[]): boolean {
      if (running >= AT_ONCE || host.running >= FROM_HOST_AT_ONCE) return false
      for (const piece of pending) {
        if (!hostMay(piece, sources)) continue
        host.running += 1
        run(piece, fromHost(piece))
        return true
      }
      return false
    }

    function hostMay(piece: Piece, sources: readonly PeerSource[]): boolean {
      if (sources.some((source) => holds(source, piece)))
        return host.running === 0 && !host.failed && peersTakeLong()
      return peers?.awaited !== true || deps.now() - startedAt >= PIECE_LINK_WAIT_MS
    }

    /** By what came so far. */
    function peersTakeLong(): boolean {
      const ms = pace.since === null ? 0 : deps.now() - pace.since
      if (ms < PIECE_FLOOR_MS) return false
      const waiting = [...pending].reduce((sum, { bytes }) => sum + bytes, 0)
      return waiting > (pace.bytes / ms) * PIECE_HELP_MS
    }

    function run(piece: Piece, work: Promise<boolean>): void {
      pending.delete(piece)
      running += 1
      work.then(
        (done) => {
          running -= 1
          if (!done) pending.add(piece)
          pump()
        },
        (thrown: unknown) => fail(thrown),
      )
    }

    async function fromPeer(piece: Piece, source: PeerSource): Promise<boolean> {
      const onBytes = (count: number): void => {
        pace.bytes += count
        deps.onPeerBytes(count)
      }
      const answer = await source.fetch(piece, { signal, onBytes })
      if (answer.kind === 'failed') return false
      const hash = await hashOf(answer.bytes)
      if (hash !== piece.sha256) {
        source.reject(`${source.name} sent a piece with hash ${hash}, expected ${piece.sha256}`)
        return false
      }
      await deps.keep(piece, answer.bytes)
      return true
    }

    async function fromHost(piece: Piece): Promise<boolean> {
      try {
        await deps.keep(piece, await deps.fromHost(piece))
        return true
      } catch (thrown) {
        const isElsewhere = (peers?.list() ?? []).some((source) => holds(source, piece))
        if (!isElsewhere || !isOfSource(thrown)) throw thrown
        host.failed = true
        return false
      } finally {
        host.running -= 1
      }
    }

    async function look(): Promise<void> {
      while (!over) {
        await deps.wait(LOOK_MS, signal)
        pump()
      }
    }

    pump()
    // Ends with the download, or by the abort that ended it.
    if (peers !== null) look().catch(() => undefined)
    if (signal.aborted) onAbort()
  })
}

/** Only a piece that lies about its size is larger: the host's answer then says so. */
function holds(source: PeerSource, piece: Piece): boolean {
  return piece.bytes <= SINGLE_FILE_MAX_BYTES && source.has(piece.sha256)
}

/** What fewest others have: then no source is out of work early. */
function rarest(
  pending: ReadonlySet<Piece>,
  source: PeerSource,
  sources: readonly PeerSource[],
): Piece | null {
  let found: Piece | null = null
  let fewest = Infinity
  for (const piece of pending) {
    if (!holds(source, piece)) continue
    const holders = sources.filter((other) => other.has(piece.sha256)).length
    if (holders === 1) return piece
    if (holders < fewest) [found, fewest] = [piece, holders]
  }
  return found
}

function isOfSource(thrown: unknown): boolean {
  const { code } = toCrowdError(thrown)
  return code === 'piece-unavailable' || code === 'piece-corrupt'
}
