import { createHash } from 'node:crypto'
import type { PieceHash } from '../../sdk/core/ids.ts'
import type { Manifest, Piece } from '../../sdk/core/model/manifest.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import { abortedError, fetchPieces, pieceSource } from '../../sdk/storage/download.ts'
import type { HashBytes } from '../../sdk/storage/hash.ts'
import type { ShardStore } from '../../sdk/storage/shard-store.ts'
import type { FetchPieces } from '../../sdk/worker/fetch-pieces.ts'

/** What the pieces of a model are, by hash. */
export type PieceBytes = ReadonlyMap<PieceHash, Uint8Array>

/** The same model with pieces that have bytes, of the lengths that it says. The exact runner doesn't read them. */
export function withPieces(model: Manifest): { manifest: Manifest; pieces: PieceBytes } {
  const pieces = new Map<PieceHash, Uint8Array>()
  const filled = ({ bytes: length }: Piece): Piece => {
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; at += 1) bytes[at] = at * 31 + pieces.size * 7 + (at >> 8)
    const sha256 = hashOf(bytes)
    pieces.set(sha256, bytes)
    return { sha256, bytes: length }
  }
  const blocks = model.blocks.map((block) => ({ ...block, data: block.data.map(filled) }))
  return { manifest: { ...model, blocks }, pieces }
}

function hashOf(bytes: Uint8Array): PieceHash {
  // What the brand stands for.
  return createHash('sha256').update(bytes).digest('hex') as PieceHash
}

/** At once, where the product's own gives the bytes to another thread: nothing here may wait for one. */
const hashNow: HashBytes = (bytes) => Promise.resolve(hashOf(bytes))

/** A device's pieces. Nothing is checked when they come in: that is left to whoever fetches them. */
export function createSimStore(onWrite: (hash: PieceHash, bytes: Uint8Array) => void): ShardStore {
  const pieces = new Map<PieceHash, Uint8Array>()
  return {
    has: (hash) => Promise.resolve(pieces.has(hash)),
    read: (hash) => Promise.resolve(pieces.get(hash)?.slice() ?? null),
    write(hash, bytes) {
      pieces.set(hash, bytes.slice())
      onWrite(hash, bytes)
      return Promise.resolve()
    },
    delete(hash) {
      pieces.delete(hash)
      return Promise.resolve()
    },
    list: () => Promise.resolve([...pieces.keys()]),
    usage() {
      const usedBytes = [...pieces.values()].reduce((sum, { length }) => sum + length, 0)
      return Promise.resolve({ usedBytes, freeBytes: null, persistent: true })
    },
  }
}

const HOST_URL = 'http://host/pieces/'

/** The product's downloads: from peers first, otherwise from the host at a steady speed. */
export function simFetch(deps: {
  readonly store: ShardStore
  readonly timers: Timers
  readonly pieces: PieceBytes
  readonly random: () => number
  readonly bytesPerMs: number
}): FetchPieces {
  const { store, timers, random } = deps
  const later = (ms: number, task: () => void): (() => void) => timers.after(ms, task)

  function wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((done, reject) => {
      const cancel = timers.after(ms, () => {
        signal.removeEventListener('abort', stop)
        done()
      })
      const stop = (): void => {
        cancel()
        reject(abortedError())
      }
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
    })
  }

  async function get(url: string, signal: AbortSignal): Promise<Response> {
    // The rest of the address is the hash; what isn't one is not found.
    const bytes = deps.pieces.get(url.slice(HOST_URL.length) as PieceHash)
    if (bytes === undefined) return new Response(null, { status: 404 })
    await wait(bytes.length / deps.bytesPerMs, signal)
    return new Response(bytes.slice())
  }

  return async (pieces, { signal, onProgress, peers }) => {
    await fetchPieces(
      {
        pieces,
        store,
        sources: [pieceSource('host', HOST_URL)],
        // Only called with an address and a signal.
        fetch: (url, init) => get(url as string, init?.signal ?? signal),
        signal,
        ...(peers === undefined ? {} : { peers }),
        onProgress: ({ storedBytes, fetchedBytes, peerBytes }) =>
          onProgress(storedBytes, fetchedBytes, peerBytes),
      },
      { wait, random, now: timers.now, later, hash: hashNow },
    )
  }
}
