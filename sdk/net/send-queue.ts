import { CHUNK_PREFIX_BYTES, chunkBytesAt, writeChunk } from '../core/wire/chunker.ts'
import type { SendWindow } from '../core/wire/credits.ts'
import type { CrowdError } from '../core/errors.ts'
import { BUFFER_HIGH_BYTES } from '../core/limits.ts'
import type { Lane, Link } from './channel.ts'

type Waiting = {
  readonly frame: Uint8Array
  offset: number
  readonly done: () => void
  readonly failed: (error: CrowdError) => void
}

export type SendQueue = {
  /** Resolves when the whole frame was handed to the link; at once where window and buffer have room. */
  send(frame: Uint8Array, lane: Lane): Promise<void>
  /** The handshake is through: frames may go out from now on. */
  open(): void
  /** Sends what can go now. Called when credit came or the link drained. */
  pump(): void
  /** Time since which the oldest waiting frame made no step; null when nothing waits. */
  readonly stuckSinceMs: number | null
  /** Rejects everything that waits, and from now on every send. */
  fail(error: CrowdError): void
}

export type SendQueueDeps = {
  readonly link: Link
  readonly window: SendWindow
  readonly now: () => number
  readonly onSent: (bytes: number) => void
  /** The link threw. */
  readonly onBroken: (thrown: unknown) => void
}

/**
 * Frames waiting for their way out, one line per lane. Bulk needs credit of the other end and room in the
 * transport's buffer; control needs only the room. Nothing here waits for a timer.
 */
export function createSendQueue(deps: SendQueueDeps): SendQueue {
  const { link, window } = deps
  const lines: Record<Lane, Waiting[]> = { control: [], bulk: [] }
  const frameNumbers: Record<Lane, number> = { control: 0, bulk: 0 }
  let movedMs = deps.now()
  let failure: CrowdError | null = null
  let isOpen = false

  function hasRoom(lane: Lane, bytes: number): boolean {
    if (link.bufferedBytes(lane) > BUFFER_HIGH_BYTES) return false
    return lane === 'control' || bytes <= window.free
  }

  function pumpLane(lane: Lane): void {
    const line = lines[lane]
    for (let head = line[0]; head !== undefined && failure === null; head = line[0]) {
      const bytes = chunkBytesAt(head.frame.length, head.offset)
      if (!hasRoom(lane, bytes)) return
      link.send(lane, writeChunk(head.frame, frameNumbers[lane], head.offset))
      if (lane === 'bulk') window.sent(bytes)
      deps.onSent(bytes)
      movedMs = deps.now()
      head.offset += bytes - CHUNK_PREFIX_BYTES
      if (head.offset < head.frame.length) continue
      frameNumbers[lane] = (frameNumbers[lane] + 1) >>> 0
      line.shift()
      head.done()
    }
  }

  function pump(): void {
    if (failure !== null || !isOpen) return
    try {
      pumpLane('control')
      pumpLane('bulk')
    } catch (thrown) {
      deps.onBroken(thrown)
    }
  }

  return {
    send(frame, lane) {
      if (failure !== null) return Promise.reject(failure)
      return new Promise((done, failed) => {
        if (lines.control.length + lines.bulk.length === 0) movedMs = deps.now()
        lines[lane].push({ frame, offset: 0, done, failed })
        pump()
      })
    },
    open() {
      isOpen = true
      pump()
    },
    pump,
    get stuckSinceMs() {
      return lines.control.length + lines.bulk.length === 0 ? null : movedMs
    },
    fail(error) {
      if (failure !== null) return
      failure = error
      for (const waiting of [...lines.control.splice(0), ...lines.bulk.splice(0)]) {
        waiting.failed(error)
      }
    },
  }
}
