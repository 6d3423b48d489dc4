import type { PairId, PeerId, PieceHash } from '../../sdk/core/ids.ts'
import type { Piece } from '../../sdk/core/model/manifest.ts'
import {
  decodePieceMessage,
  encodePieceMessage,
  type PieceMessage,
} from '../../sdk/core/wire/piece-message.ts'
import type { Channel } from '../../sdk/net/channel.ts'
import { createChannel, type FrameChannel } from '../../sdk/net/frame-channel.ts'
import { createMemoryWire, type MemoryWire } from '../../sdk/net/memory-link.ts'
import { hashBytes } from '../../sdk/storage/hash.ts'
import type { PeerAnswer, PeerSource } from '../../sdk/storage/peer-pieces.ts'
import { settle, type ManualTimers } from './manual-timers.ts'

/** The two ends of a piece link in one process, on a clock that only a test moves. */
export type PiecePair = {
  readonly wire: MemoryWire
  readonly source: FrameChannel
  readonly fetcher: FrameChannel
}

export function openPiecePair(timers: ManualTimers, name = 'source', latencyMs = 0): PiecePair {
  const wire = createMemoryWire({ timers }, { latencyMs })
  const order = { pair: `pair-${name}` as PairId, attempt: 1 }
  const end = (link: MemoryWire['a'], peer: string): FrameChannel =>
    createChannel({ link, order: { ...order, peer: peer as PeerId }, timers })
  return { wire, source: end(wire.a, 'fetcher'), fetcher: end(wire.b, name) }
}

export async function makePiece(
  seed: number,
  size: number,
): Promise<{ readonly piece: Piece; readonly bytes: Uint8Array }> {
  const bytes = new Uint8Array(size)
  for (let at = 0; at < size; at += 1) bytes[at] = at * 31 + seed * 7 + (at >> 8)
  return { piece: { sha256: await hashBytes(bytes), bytes: size }, bytes }
}

/** Large arrays are compared as buffers: a matcher takes seconds for them. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

/** What a hand-driven end says. */
export function sayPieces(channel: Channel, message: PieceMessage): void {
  channel.send(encodePieceMessage(message), 'bulk').catch(() => undefined)
}

export const NO_HASH = '0'.repeat(64) as PieceHash

export type PieceFetch = {
  answer: PeerAnswer | null
  bytes: number
  readonly stop: AbortController
}

export function fetchFrom(source: PeerSource, { piece }: { piece: Piece }): PieceFetch {
  const fetching: PieceFetch = { answer: null, bytes: 0, stop: new AbortController() }
  void source
    .fetch(piece, {
      signal: fetching.stop.signal,
      onBytes: (count) => {
        fetching.bytes += count
      },
    })
    .then((answer) => {
      fetching.answer = answer
    })
  return fetching
}

/** What the other end says, read by hand. */
export function listenPieces(channel: Channel): PieceMessage[] {
  const heard: PieceMessage[] = []
  channel.onFrame((frame) => heard.push(structuredClone(decodePieceMessage(frame))))
  return heard
}

/** Why a channel closed; empty while it is open. */
export function closeReason(channel: Channel): () => string {
  let reason = ''
  channel.onClose((because) => {
    reason = because
  })
  return () => reason
}

/** Lets all messages on a wire without latency arrive. */
export async function flow(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await settle()
}
