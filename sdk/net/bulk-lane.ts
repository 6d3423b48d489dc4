import type { CrowdError } from '../core/errors.ts'
import { FRAME_MAX_BYTES } from '../core/limits.ts'
import { createReassembler } from '../core/wire/chunker.ts'
import { createReceiveWindow, createSendWindow } from '../core/wire/credits.ts'
import { createFrameInbox } from './frame-inbox.ts'
import { createSendQueue, type LaneOut } from './send-queue.ts'

/** What a channel needs of its bulk lane, wherever that is. */
export type BulkLane = {
  /** The other end's hello came: so many bytes it takes. @throws CrowdError bad-frame */
  announced(windowBytes: number): void
  /** The handshake is through: frames may go out from now on. */
  open(): void
  /** The other end consumed so many bytes in all. @throws CrowdError bad-frame */
  granted(consumedTotal: number): void
  /** Sends what can go now. */
  pump(): void
  /** Time since which data waits for its next step, in either direction; null when none waits. */
  readonly stuckSinceMs: number | null
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Rejects what waits and every later send; frames that come are dropped. */
  fail(error: CrowdError): void
}

/** A bulk lane in this thread. */
export type LocalBulkLane = BulkLane & {
  send(frame: Uint8Array): Promise<void>
  /** One listener; frames that come before it wait. */
  onFrame(handler: (frame: Uint8Array) => void): void
  /** A chunk from the link. @throws CrowdError bad-frame, and what the listener throws */
  receive(chunk: Uint8Array): void
}

export type BulkLaneDeps = {
  readonly out: LaneOut
  readonly now: () => number
  /** Bytes in flight, each way. */
  readonly creditBytes: number
  /** So many bytes were consumed here in all: the other end must hear of it, on the control lane. */
  readonly grant: (consumedTotal: number) => void
  readonly onBroken: (thrown: unknown) => void
}

/** Frames in chunks, with credits of both ends. */
export function createBulkLane(deps: BulkLaneDeps): LocalBulkLane {
  const sendWindow = createSendWindow(deps.creditBytes)
  const receiveWindow = createReceiveWindow(deps.creditBytes)
  const reassembler = createReassembler(FRAME_MAX_BYTES)
  const inbox = createFrameInbox()
  let sentBytes = 0
  let receivedBytes = 0
  let chunkHeardMs = deps.now()
  let failed = false
  const queue = createSendQueue({
    out: deps.out,
    window: sendWindow,
    now: deps.now,
    onSent: (bytes) => {
      sentBytes += bytes
    },
    onBroken: deps.onBroken,
  })

  function receive(chunk: Uint8Array): void {
    if (failed) return
    receivedBytes += chunk.length
    chunkHeardMs = deps.now()
    receiveWindow.received(chunk.length)
    const frame = reassembler.push(chunk)
    const consumed = () => {
      const total = failed ? null : receiveWindow.consumed(chunk.length)
      if (total !== null) deps.grant(total)
    }
    // Chunks of an unfinished frame lie in its own buffer already.
    if (frame === null) consumed()
    else inbox.put(frame, consumed)
  }

  return {
    announced: sendWindow.open,
    open: queue.open,
    granted(total) {
      sendWindow.granted(total)
      queue.pump()
    },
    pump: queue.pump,
    send: queue.send,
    onFrame: inbox.onFrame,
    receive,
    get stuckSinceMs() {
      return reassembler.open ? chunkHeardMs : queue.stuckSinceMs
    },
    get sentBytes() {
      return sentBytes
    },
    get receivedBytes() {
      return receivedBytes
    },
    fail(error) {
      failed = true
      queue.fail(error)
      inbox.close()
    },
  }
}
