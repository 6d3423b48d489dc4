import { CrowdError, toCrowdError } from '../core/errors.ts'
import { CHUNK_BYTES, CREDIT_BYTES, FRAME_MAX_BYTES } from '../core/limits.ts'
import { CHUNK_PAYLOAD_BYTES, createReassembler } from '../core/wire/chunker.ts'
import { readLinkMessage, writeLinkMessage, type LinkMessage } from '../core/wire/link-message.ts'
import {
  createBulkLane,
  type BulkLane,
  type BulkLaneDeps,
  type LocalBulkLane,
} from './bulk-lane.ts'
import type { Channel, Lane, Link, PairOrder } from './channel.ts'
import { createFrameInbox } from './frame-inbox.ts'
import { createHandshake } from './handshake.ts'
import { createPulse } from './pulse.ts'
import { createSendQueue, type LaneOut } from './send-queue.ts'
import type { Timers } from './timers.ts'

export type ChannelDeps = {
  readonly link: Link
  readonly order: Pick<PairOrder, 'pair' | 'peer' | 'attempt'>
  readonly timers: Timers
}

export type ChannelOptions = {
  /** Bulk bytes in flight, each way: 256 KiB for tabs, 128 KiB for Node. */
  readonly creditBytes?: number
}

/** A channel and the news that both ends are there. */
export type FrameChannel = Channel & {
  /** Resolves after the handshake on both lanes; rejects when the link closed before. The caller sets the limit. */
  readonly opened: Promise<void>
}

/**
 * The channel over any link: handshake, frames in chunks, credits, heartbeat, bye. One malformed byte closes
 * it with the reason. Frames may be sent before the handshake is through; they wait.
 *
 * @example
 * const channel = createChannel({ link, order, timers })
 * await channel.opened
 * await channel.send(encodeFrame(frame), 'bulk')
 */
export function createChannel(deps: ChannelDeps, options: ChannelOptions = {}): FrameChannel {
  const { link, order, timers } = deps
  const creditBytes = options.creditBytes ?? CREDIT_BYTES
  const reassembler = createReassembler(CHUNK_PAYLOAD_BYTES)
  const inbox = createFrameInbox()
  const counters = { sent: 0, received: 0 }
  const closeHandlers: ((reason: string) => void)[] = []
  let closedBecause: string | null = null

  const opening = createOpening()
  const handshake = createHandshake({
    attempt: order.attempt,
    windowBytes: creditBytes,
    timers,
    say,
    onWindow: (windowBytes) => bulk.announced(windowBytes),
    onReady() {
      opening.resolve()
      queue.open()
      bulk.open()
      pulse.start()
    },
  })
  const grant = (consumed: number) => say('control', writeLinkMessage({ kind: 'credit', consumed }))
  const { bulk, near } = bulkOf(link, { now: timers.now, creditBytes, grant, onBroken: breakOff })
  const queue = createSendQueue({
    out: laneOut(link, 'control'),
    now: timers.now,
    onSent: (bytes) => {
      counters.sent += bytes
    },
    onBroken: breakOff,
  })
  const pulse = createPulse({
    timers,
    ping: (number) => say('control', writeLinkMessage({ kind: 'ping', number })),
    stuckSinceMs: () => bulk.stuckSinceMs ?? queue.stuckSinceMs,
    onBeat: pump,
    onDead: (reason) => finish(reason, true),
  })

  function pump(): void {
    queue.pump()
    bulk.pump()
  }

  function say(lane: Lane, message: Uint8Array): void {
    try {
      link.send(lane, message)
      counters.sent += message.length
    } catch (thrown) {
      breakOff(thrown)
    }
  }

  function breakOff(thrown: unknown): void {
    finish(`transport: ${toCrowdError(thrown, 'link-closed').message}`)
  }

  /** Ends the channel; `farewell` tells the other end why. */
  function finish(reason: string, farewell = false): void {
    if (closedBecause !== null) return
    closedBecause = reason
    handshake.stop()
    pulse.stop()
    if (farewell) sayBye(link, reason)
    const code = reason.startsWith('timeout') ? 'timeout' : 'link-closed'
    const error = new CrowdError(code, `link to ${order.peer} closed: ${reason}`)
    queue.fail(error)
    bulk.fail(error)
    opening.reject(error)
    inbox.close()
    link.close(reason)
    for (const handler of closeHandlers) handler(reason)
  }

  /** Whatever this side or the other did wrong ends the link, and both learn why. */
  function guarded(work: () => void): void {
    try {
      work()
    } catch (thrown) {
      fault(toCrowdError(thrown))
    }
  }

  function fault({ code, message }: CrowdError): void {
    finish(`${code}: ${message}`, true)
  }

  function receive(lane: Lane, bytes: Uint8Array): void {
    if (closedBecause !== null) return
    pulse.heard()
    guarded(() => {
      if (bytes.length > CHUNK_BYTES) {
        throw new CrowdError('bad-frame', `bad link message: ${bytes.length} bytes`)
      }
      const message = readLinkMessage(bytes)
      if (lane === 'control' || message.kind !== 'chunk') counters.received += bytes.length
      if (message.kind === 'chunk') receiveChunk(lane, bytes)
      else if (message.kind === 'hello' || message.kind === 'ack') handshake.receive(lane, message)
      else if (lane === 'control') handle(message)
      else throw new CrowdError('bad-frame', `bad link message: ${message.kind} on the bulk lane`)
    })
  }

  function handle(
    message: Extract<LinkMessage, { kind: 'credit' | 'ping' | 'pong' | 'bye' }>,
  ): void {
    switch (message.kind) {
      case 'credit':
        bulk.granted(message.consumed)
        break
      case 'ping':
        say('control', writeLinkMessage({ kind: 'pong', number: message.number }))
        break
      case 'pong':
        pulse.pong(message.number)
        break
      case 'bye':
        finish(`bye: ${message.reason}`)
        break
    }
  }

  function receiveChunk(lane: Lane, bytes: Uint8Array): void {
    if (!handshake.heard(lane)) throw new CrowdError('bad-frame', 'bad chunk: before the hello')
    if (lane === 'bulk') {
      near?.receive(bytes)
      return
    }
    const frame = reassembler.push(bytes)
    if (frame !== null) inbox.put(frame, () => undefined)
  }

  link.distant?.follow({ grant, fault })
  link.onDrain(pump)
  link.onClose((reason) => finish(reason))
  link.onMessage(receive)
  handshake.start()

  return {
    pair: order.pair,
    peer: order.peer,
    path: link.path,
    lane: link.distant?.id ?? null,
    opened: opening.promise,
    async send(frame, lane) {
      checkSize(frame, lane)
      if (lane === 'control') await queue.send(frame)
      else if (near !== null) await near.send(frame)
      else throw new CrowdError('internal', 'the frames of this link pass in another thread')
    },
    onFrame: (handler) =>
      guarded(() => {
        inbox.onFrame(handler)
        near?.onFrame(handler)
      }),
    onClose(handler) {
      if (closedBecause !== null) handler(closedBecause)
      else closeHandlers.push(handler)
    },
    stats: () => ({
      rttMs: pulse.rttMs,
      sentBytes: counters.sent + bulk.sentBytes,
      receivedBytes: counters.received + bulk.receivedBytes,
    }),
    close: (reason) => finish(reason, true),
  }
}

function sayBye(link: Link, reason: string): void {
  try {
    link.send('control', writeLinkMessage({ kind: 'bye', reason }))
  } catch {
    // The transport was faster; the other end sees its close.
  }
}

function checkSize(frame: Uint8Array, lane: Lane): void {
  const limit = lane === 'control' ? CHUNK_PAYLOAD_BYTES : FRAME_MAX_BYTES
  if (frame.length > 0 && frame.length <= limit) return
  throw new CrowdError('bad-frame', `frame of ${frame.length} bytes, the limit is ${limit}`)
}

/** The bulk lane of a link; `near` where it is served in this thread. */
function bulkOf(
  link: Link,
  deps: Omit<BulkLaneDeps, 'out'>,
): { readonly bulk: BulkLane; readonly near: LocalBulkLane | null } {
  if (link.distant !== undefined) return { bulk: link.distant, near: null }
  const near = createBulkLane({ ...deps, out: laneOut(link, 'bulk') })
  return { bulk: near, near }
}

function laneOut(link: Link, lane: Lane): LaneOut {
  return {
    send: (message) => link.send(lane, message),
    bufferedBytes: () => link.bufferedBytes(lane),
  }
}

function createOpening() {
  let resolve: () => void = () => undefined
  let reject: (error: CrowdError) => void = () => undefined
  const promise = new Promise<void>((done, failed) => {
    resolve = done
    reject = failed
  })
  // Whoever doesn't wait for the handshake learns of the end through onClose.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
