import { CHUNK_PREFIX_BYTES, chunkBytesAt, writeChunk } from '../core/wire/chunker.ts'
import type { CrowdError } from '../core/errors.ts'
import { BUFFER_HIGH_BYTES } from '../core/limits.ts'

type Waiting = {
  readonly frame: Uint8Array
  offset: number
  readonly done: () => void
  readonly failed: (error: CrowdError) => void
}

export type SendQueue = {
  /** Resolves when the whole frame was handed to the link; at once where window and buffer have room. */
  send(frame: Uint8Array): Promise<void>
  /** The handshake is through: frames may go out from now on. */
  open(): void
  /** Sends what can go now. Called when credit came or the link drained. */
  pump(): void
  /** Time since which the oldest waiting frame made no step; null when nothing waits. */
  readonly stuckSinceMs: number | null
  /** Rejects everything that waits, and from now on every send. */
  fail(error: CrowdError): void
}

/** One lane of a link, as its queue sees it. */
export type LaneOut = {
  /** @throws CrowdError link-closed */
  send(message: Uint8Array): void
  /** Bytes accepted by send() and not yet on the wire. */
  bufferedBytes(): number
}

export type SendQueueDeps = {
  readonly out: LaneOut
  /** What the other end takes; absent on the control lane, which needs none. */
  readonly window?: { readonly free: number; sent(bytes: number): void }
  readonly now: () => number
  readonly onSent: (bytes: number) => void
  /** The link threw. */
  readonly onBroken: (thrown: unknown) => void
}

/**
 * Frames of one lane waiting for their way out. They need room in the transport's buffer and, on the bulk lane, credit
 * of the other end. Nothing here waits for a timer.
 */
export function createSendQueue(deps: SendQueueDeps): SendQueue {
  const { out, window } = deps
  const line: Waiting[] = []
  let frameNumber = 0
  let movedMs = deps.now()
  let failure: CrowdError | null = null
  let isOpen = false

  function hasRoom(bytes: number): boolean {
    if (out.bufferedBytes() > BUFFER_HIGH_BYTES) return false
    return window === undefined || bytes <= window.free
  }

  function sendWaiting(): void {
    for (let head = line[0]; head !== undefined && failure === null; head = line[0]) {
      const bytes = chunkBytesAt(head.frame.length, head.offset)
      if (!hasRoom(bytes)) return
      out.send(writeChunk(head.frame, frameNumber, head.offset))
      window?.sent(bytes)
      deps.onSent(bytes)
      movedMs = deps.now()
      head.offset += bytes - CHUNK_PREFIX_BYTES
      if (head.offset < head.frame.length) continue
      frameNumber = (frameNumber + 1) >>> 0
      line.shift()
      head.done()
    }
  }

  function pump(): void {
    if (failure !== null || !isOpen) return
    try {
      sendWaiting()
    } catch (thrown) {
      deps.onBroken(thrown)
    }
  }

  return {
    send(frame) {
      if (failure !== null) return Promise.reject(failure)
      return new Promise((done, failed) => {
        if (line.length === 0) movedMs = deps.now()
        line.push({ frame, offset: 0, done, failed })
        pump()
      })
    },
    open() {
      isOpen = true
      pump()
    },
    pump,
    get stuckSinceMs() {
      return line.length === 0 ? null : movedMs
    },
    fail(error) {
      if (failure !== null) return
      failure = error
      for (const waiting of line.splice(0)) waiting.failed(error)
    },
  }
}
