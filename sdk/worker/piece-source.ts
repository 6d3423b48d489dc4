import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import {
  PIECE_BUSY_MS,
  PIECE_FLOOR_BYTES_PER_SECOND,
  PIECE_FLOOR_MS,
  PIECE_SILENCE_MS,
  PIECES_PER_SOURCE,
} from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import {
  decodePieceMessage,
  encodePieceMessage,
  type PieceMessage,
} from '../core/wire/piece-message.ts'
import type { Channel } from '../net/channel.ts'
import type { PeerAnswer, PeerFetchDeps, PeerSource } from '../storage/peer-pieces.ts'
import { createDeferred, type Deferred } from './deferred.ts'

export type PieceSourceDeps = {
  readonly channel: Channel
  /** Of the served model: what else a peer says it has means nothing here. */
  isPiece(hash: PieceHash): boolean
  onChange(): void
  /** It sent wrong bytes. */
  onWrong(reason: string): void
  now(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

/** A source at the other end of a piece link. Leaves a slow or silent one by closing the link. */
export type PieceSource = PeerSource & {
  /** It has said what it has. */
  readonly ready: boolean
}

type Request = {
  readonly piece: Piece
  readonly onBytes: (count: number) => void
  readonly answer: Deferred<PeerAnswer>
  buffer: Uint8Array | null
  filled: number
}

/** How often silence and speed are looked at while something is owed. */
const WATCH_MS = 500

export function createPieceSource(deps: PieceSourceDeps): PieceSource {
  const { channel, now } = deps
  const here = new Set<PieceHash>()
  const requests = new Map<number, Request>()
  /** Requests that were stopped: parts of theirs may be on the way. */
  const stopped = new Set<number>()
  let ready = false
  let gone: string | null = null
  let slots = PIECES_PER_SOURCE
  let isBusy = false
  let nextRequest = 1
  const pace = { heardAt: 0, since: 0, bytes: 0 }
  let stopWatching: (() => void) | null = null
  let stopPausing: () => void = () => undefined

  function say(message: PieceMessage): void {
    // A link that breaks tells by its close.
    channel.send(encodePieceMessage(message), 'bulk').catch(() => undefined)
  }

  function receive(frame: Uint8Array): void {
    const message = decodePieceMessage(frame)
    switch (message.kind) {
      case 'have':
        for (const hash of message.hashes) if (deps.isPiece(hash)) here.add(hash)
        ready = true
        deps.onChange()
        return
      case 'part':
        takePart(message.request, message.offset, message.bytes)
        return
      case 'refusal':
        refused(message.request, message.reason)
        return
      case 'want':
      case 'stop':
        throw new CrowdError('bad-frame', `bad piece message: ${message.kind} from a source`)
    }
  }

  function takePart(number: number, offset: number, bytes: Uint8Array): void {
    pace.heardAt = now()
    pace.bytes += bytes.length
    const request = requests.get(number)
    if (request === undefined) {
      if (stopped.has(number)) return
      throw new CrowdError('bad-frame', `bad piece message: a part of request ${number}`)
    }
    const { piece } = request
    if (offset !== request.filled || offset + bytes.length > piece.bytes)
      throw new CrowdError('bad-frame', `bad piece message: ${bytes.length} bytes at ${offset}`)
    request.buffer ??= new Uint8Array(piece.bytes)
    request.buffer.set(bytes, offset)
    request.filled += bytes.length
    request.onBytes(bytes.length)
    if (request.filled === piece.bytes) end(number, { kind: 'bytes', bytes: request.buffer })
  }

  function refused(number: number, reason: 'not-here' | 'busy'): void {
    pace.heardAt = now()
    const request = requests.get(number)
    if (request === undefined) return
    if (reason === 'not-here') here.delete(request.piece.sha256)
    // One piece at a time it may take: the others wait for its end.
    else if (requests.size > 1) slots = 1
    else {
      isBusy = true
      stopPausing = deps.later(PIECE_BUSY_MS, () => {
        isBusy = false
        deps.onChange()
      })
    }
    end(number, { kind: 'failed', reason: `it is ${reason}` })
  }

  function end(number: number, answer: PeerAnswer): void {
    const request = requests.get(number)
    if (request === undefined) return
    requests.delete(number)
    if (requests.size === 0) {
      stopWatching?.()
      stopWatching = null
    }
    request.answer.resolve(answer)
  }

  function leave(reason: string): void {
    if (gone !== null) return
    gone = reason
    stopPausing()
    for (const number of [...requests.keys()]) end(number, { kind: 'failed', reason })
    channel.close(reason)
    deps.onChange()
  }

  function watch(): void {
    stopWatching = deps.later(WATCH_MS, () => {
      const at = now()
      if (at - pace.heardAt >= PIECE_SILENCE_MS) leave('no piece came for too long')
      else if (at - pace.since >= PIECE_FLOOR_MS) {
        const floor = (PIECE_FLOOR_BYTES_PER_SECOND * (at - pace.since)) / 1_000
        if (pace.bytes < floor) leave('its pieces come too slowly')
        Object.assign(pace, { since: at, bytes: 0 })
      }
      if (gone === null && requests.size > 0) watch()
    })
  }

  channel.onClose((reason) => leave(reason))
  channel.onFrame(receive)

  return {
    name: channel.peer,
    get ready() {
      return ready
    },
    has: (hash) => gone === null && here.has(hash),
    get free() {
      return gone === null && !isBusy && requests.size < slots
    },
    fetch(piece: Piece, { signal, onBytes }: PeerFetchDeps) {
      if (gone !== null) return Promise.resolve({ kind: 'failed', reason: gone })
      const number = nextRequest++
      const answer = createDeferred<PeerAnswer>()
      if (requests.size === 0) Object.assign(pace, { heardAt: now(), since: now(), bytes: 0 })
      requests.set(number, { piece, onBytes, answer, buffer: null, filled: 0 })
      say({ kind: 'want', request: number, hash: piece.sha256 })
      if (stopWatching === null) watch()
      const abort = (): void => {
        if (!requests.has(number)) return
        stopped.add(number)
        say({ kind: 'stop', request: number })
        end(number, { kind: 'failed', reason: 'it is not wanted any more' })
      }
      signal.addEventListener('abort', abort, { once: true })
      if (signal.aborted) abort()
      return answer.promise.finally(() => signal.removeEventListener('abort', abort))
    },
    reject(reason) {
      deps.onWrong(reason)
      leave(reason)
    },
  }
}
