import { CrowdError, toCrowdError } from '../core/errors.ts'
import {
  CHUNK_BYTES,
  CREDIT_BYTES,
  FRAME_MAX_BYTES,
  HANDSHAKE_REPEAT_MS,
  SEND_STALL_MS,
} from '../core/limits.ts'
import { CHUNK_PAYLOAD_BYTES, createReassembler } from '../core/wire/chunker.ts'
import { createReceiveWindow, createSendWindow } from '../core/wire/credits.ts'
import { WIRE_VERSION } from '../core/wire/frame.ts'
import { createHeartbeat } from '../core/wire/heartbeat.ts'
import {
  helloFor,
  readLinkMessage,
  writeLinkMessage,
  type LinkMessage,
} from '../core/wire/link-message.ts'
import type { Channel, Lane, Link, PairOrder } from './channel.ts'
import { createFrameInbox } from './frame-inbox.ts'
import { createSendQueue } from './send-queue.ts'
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

const LANES: readonly Lane[] = ['control', 'bulk']

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
  const heartbeat = createHeartbeat(timers.now())
  const sendWindow = createSendWindow(creditBytes)
  const receiveWindow = createReceiveWindow(creditBytes)
  const reassemblers = {
    control: createReassembler(CHUNK_PAYLOAD_BYTES),
    bulk: createReassembler(FRAME_MAX_BYTES),
  }
  const inbox = createFrameInbox()
  const helloed = new Set<Lane>()
  const acked = new Set<Lane>()
  const counters = { sent: 0, received: 0 }
  let state: 'opening' | 'open' | 'closed' = 'opening'
  let closeReason = ''
  const closeHandlers: ((reason: string) => void)[] = []
  let chunkHeardMs = timers.now()
  let cancelTimer: () => void = () => undefined

  const opening = createOpening()

  const queue = createSendQueue({
    link,
    window: sendWindow,
    now: timers.now,
    onSent: (bytes) => {
      counters.sent += bytes
    },
    onBroken: (thrown) => finish(`transport: ${toCrowdError(thrown, 'link-closed').message}`),
  })

  function say(lane: Lane, message: Uint8Array): void {
    try {
      link.send(lane, message)
      counters.sent += message.length
    } catch (thrown) {
      finish(`transport: ${toCrowdError(thrown, 'link-closed').message}`)
    }
  }

  /** Ends the channel; `farewell` tells the other end why. */
  function finish(reason: string, farewell = false): void {
    if (state === 'closed') return
    state = 'closed'
    closeReason = reason
    cancelTimer()
    const code = reason.startsWith('timeout') ? 'timeout' : 'link-closed'
    const error = new CrowdError(code, `link to ${order.peer} closed: ${reason}`)
    if (farewell) {
      try {
        link.send('control', writeLinkMessage({ kind: 'bye', reason }))
      } catch {
        // The transport was faster; the other end sees its close.
      }
    }
    queue.fail(error)
    opening.reject(error)
    inbox.close()
    link.close(reason)
    for (const handler of closeHandlers) handler(reason)
  }

  function receive(lane: Lane, bytes: Uint8Array): void {
    if (state === 'closed') return
    counters.received += bytes.length
    heartbeat.heard(timers.now())
    guarded(() => {
      if (bytes.length > CHUNK_BYTES) {
        throw new CrowdError('bad-frame', `bad link message: ${bytes.length} bytes`)
      }
      const message = readLinkMessage(bytes)
      if (message.kind === 'chunk') receiveChunk(lane, bytes)
      else handle(lane, message)
    })
  }

  function handle(lane: Lane, message: Exclude<LinkMessage, { kind: 'chunk' }>): void {
    if (message.kind === 'hello' || message.kind === 'ack') {
      shakeHands(lane, message)
      return
    }
    if (lane !== 'control') throw new CrowdError('bad-frame', `bad link message: ${message.kind}`)
    switch (message.kind) {
      case 'credit':
        sendWindow.granted(message.consumed)
        queue.pump()
        break
      case 'ping':
        say('control', writeLinkMessage({ kind: 'pong', number: message.number }))
        break
      case 'pong':
        heartbeat.pong(message.number, timers.now())
        break
      case 'bye':
        finish(`bye: ${message.reason}`)
        break
    }
  }

  function shakeHands(lane: Lane, message: Extract<LinkMessage, { kind: 'hello' | 'ack' }>): void {
    // The relay may still carry words of an earlier attempt; they concern nobody.
    if (message.attempt !== order.attempt) return
    if (message.lane !== lane) throw new CrowdError('bad-frame', `bad ${message.kind}: wrong lane`)
    if (message.kind === 'ack') {
      acked.add(lane)
    } else {
      if (message.version !== WIRE_VERSION) {
        throw new CrowdError(
          'protocol-mismatch',
          `wire version ${message.version}, this side speaks ${WIRE_VERSION}`,
        )
      }
      if (!helloed.has('control') && !helloed.has('bulk')) sendWindow.open(message.windowBytes)
      helloed.add(lane)
      say(lane, writeLinkMessage({ kind: 'ack', lane, attempt: order.attempt }))
    }
    if (state === 'opening' && helloed.size === 2 && acked.size === 2) open()
  }

  function open(): void {
    state = 'open'
    cancelTimer()
    opening.resolve()
    queue.open()
    beat()
  }

  function receiveChunk(lane: Lane, bytes: Uint8Array): void {
    if (!helloed.has(lane)) throw new CrowdError('bad-frame', 'bad chunk: before the hello')
    chunkHeardMs = timers.now()
    if (lane === 'bulk') receiveWindow.received(bytes.length)
    const frame = reassemblers[lane].push(bytes)
    const consumed = () => {
      if (lane !== 'bulk' || state === 'closed') return
      const total = receiveWindow.consumed(bytes.length)
      if (total !== null) say('control', writeLinkMessage({ kind: 'credit', consumed: total }))
    }
    // Chunks of an unfinished frame lie in its own buffer already.
    if (frame === null) consumed()
    else inbox.put(frame, consumed)
  }

  /** Hellos are repeated until answered: the other end may not be listening yet, and first messages got lost. */
  function greet(): void {
    for (const lane of LANES) {
      if (state === 'opening') say(lane, helloFor(lane, order.attempt, creditBytes))
    }
    if (state === 'opening') cancelTimer = timers.after(HANDSHAKE_REPEAT_MS, greet)
  }

  function beat(): void {
    const nowMs = timers.now()
    if (heartbeat.tick(nowMs) === 'dead') {
      finish('silence: the other end stopped answering', true)
      return
    }
    const stuckMs = nowMs - (queue.stuckSinceMs ?? nowMs)
    const brokenOff = reassemblers.bulk.open || reassemblers.control.open
    if (stuckMs > SEND_STALL_MS || (brokenOff && nowMs - chunkHeardMs > SEND_STALL_MS)) {
      finish('timeout: the other end stopped moving data', true)
      return
    }
    say('control', writeLinkMessage({ kind: 'ping', number: heartbeat.ping(nowMs) }))
    // A transport that doesn't tell when it drained is looked at here.
    queue.pump()
    if (state === 'open') cancelTimer = timers.after(heartbeat.nextTickMs(nowMs), beat)
  }

  /** Whatever this side or the other did wrong ends the link, and both learn why. */
  function guarded(work: () => void): void {
    try {
      work()
    } catch (thrown) {
      const error = toCrowdError(thrown)
      finish(`${error.code}: ${error.message}`, true)
    }
  }

  link.onDrain(() => queue.pump())
  link.onClose((reason) => finish(reason))
  link.onMessage(receive)
  greet()

  return {
    pair: order.pair,
    peer: order.peer,
    path: link.path,
    opened: opening.promise,
    async send(frame, lane) {
      const limit = lane === 'control' ? CHUNK_PAYLOAD_BYTES : FRAME_MAX_BYTES
      if (frame.length === 0 || frame.length > limit) {
        throw new CrowdError('bad-frame', `frame of ${frame.length} bytes, the limit is ${limit}`)
      }
      await queue.send(frame, lane)
    },
    onFrame: (handler) => guarded(() => inbox.onFrame(handler)),
    onClose(handler) {
      if (state === 'closed') handler(closeReason)
      else closeHandlers.push(handler)
    },
    stats: () => ({
      rttMs: heartbeat.rttMs,
      sentBytes: counters.sent,
      receivedBytes: counters.received,
    }),
    close: (reason) => finish(reason, true),
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
