import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import {
  PIECE_BUSY_BYTES_PER_SECOND,
  PIECE_HASHES_MAX,
  PIECE_PART_BYTES,
  PIECE_REQUESTS_MAX,
  PIECES_PER_SOURCE,
  PIECES_SERVED,
} from '../core/limits.ts'
import {
  decodePieceMessage,
  encodePieceMessage,
  type PieceMessage,
} from '../core/wire/piece-message.ts'
import type { Channel } from '../net/channel.ts'
import type { ShardStore } from '../storage/shard-store.ts'

export type PieceServerDeps = {
  readonly store: Pick<ShardStore, 'list' | 'read'>
  /** Of the served model: nothing else is given away. */
  isPiece(hash: PieceHash): boolean
  /** Answers are computed here now: they go before. */
  isComputing(): boolean
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

/** Gives stored pieces to peers that ask for them. */
export type PieceServer = {
  /** Says what is here, and answers until the channel closes. */
  serve(channel: Channel): void
}

type Reader = {
  readonly channel: Channel
  readonly sending: Map<number, AbortController>
  /** Requests whose answer is not on its way completely. */
  open: number
}

export function createPieceServer(deps: PieceServerDeps): PieceServer {
  const readers = new Set<Reader>()

  function served(): number {
    let count = 0
    for (const { sending } of readers) count += sending.size
    return count
  }

  /** Two pieces at once; while others read too, one for each. */
  function takesMore({ sending }: Reader): boolean {
    const own = readers.size > 1 ? 1 : PIECES_PER_SOURCE
    return sending.size < own && served() < PIECES_SERVED
  }

  function receive(reader: Reader, frame: Uint8Array): void {
    const message = decodePieceMessage(frame)
    switch (message.kind) {
      case 'want':
        want(reader, message.request, message.hash)
        return
      case 'stop':
        reader.sending.get(message.request)?.abort()
        return
      case 'have':
      case 'part':
      case 'refusal':
        throw new CrowdError('bad-frame', `bad piece message: ${message.kind} from a reader`)
    }
  }

  function want(reader: Reader, request: number, hash: PieceHash): void {
    const { sending } = reader
    if (sending.has(request))
      throw new CrowdError('bad-frame', `bad piece message: request ${request} twice`)
    // Refusals wait for credit like all frames: who takes none must not heap them up here.
    if (reader.open >= PIECE_REQUESTS_MAX)
      throw new CrowdError('bad-frame', `bad piece message: ${reader.open} requests at once`)
    reader.open += 1
    answer(reader, request, hash)
      // A link that breaks in the middle tells both ends by its close.
      .catch(() => undefined)
      .finally(() => {
        reader.open -= 1
      })
  }

  async function answer(reader: Reader, request: number, hash: PieceHash): Promise<void> {
    const { channel, sending } = reader
    if (!deps.isPiece(hash)) await say(channel, { kind: 'refusal', request, reason: 'not-here' })
    else if (!takesMore(reader)) await say(channel, { kind: 'refusal', request, reason: 'busy' })
    else {
      const stop = new AbortController()
      sending.set(request, stop)
      const found = await send(channel, { request, hash, signal: stop.signal }).finally(() =>
        sending.delete(request),
      )
      if (!found) await say(channel, { kind: 'refusal', request, reason: 'not-here' })
    }
  }

  /** One piece, part by part. False: it is not here, or can't be read. */
  async function send(
    channel: Channel,
    one: { readonly request: number; readonly hash: PieceHash; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const { request, hash, signal } = one
    const piece = await deps.store.read(hash).catch(() => null)
    if (piece === null) return false
    for (let offset = 0; offset < piece.length && !signal.aborted; offset += PIECE_PART_BYTES) {
      const bytes = piece.subarray(offset, offset + PIECE_PART_BYTES)
      await say(channel, { kind: 'part', request, offset, bytes })
      if (deps.isComputing()) await pause(bytes.length)
    }
    return true
  }

  /** So that all that is sent together stays within the share beside answers. */
  function pause(bytes: number): Promise<void> {
    const ms = (bytes / PIECE_BUSY_BYTES_PER_SECOND) * 1_000 * served()
    return new Promise((resolve) => void deps.later(ms, resolve))
  }

  async function greet(channel: Channel): Promise<void> {
    const stored = await deps.store.list().catch(() => [])
    const hashes = stored.filter((hash) => deps.isPiece(hash))
    let first = 0
    do {
      await say(channel, { kind: 'have', hashes: hashes.slice(first, first + PIECE_HASHES_MAX) })
      first += PIECE_HASHES_MAX
    } while (first < hashes.length)
  }

  return {
    serve(channel) {
      const reader: Reader = { channel, sending: new Map(), open: 0 }
      readers.add(reader)
      channel.onClose(() => {
        readers.delete(reader)
        for (const stop of reader.sending.values()) stop.abort()
      })
      channel.onFrame((frame) => receive(reader, frame))
      greet(channel).catch(() => undefined)
    },
  }
}

async function say(channel: Channel, message: PieceMessage): Promise<void> {
  await channel.send(encodePieceMessage(message), 'bulk')
}
