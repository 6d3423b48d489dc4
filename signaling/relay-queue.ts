import type { PairId } from '../sdk/core/ids.ts'
import { RELAY_BYTES_PER_SECOND, RELAY_QUEUE_BYTES } from '../sdk/core/limits.ts'
import { createTokenBucket } from './token-bucket.ts'

type RelayQueueDeps = {
  forward(pair: PairId, bytes: Uint8Array): void
  /** The peer sends more than its credits can explain. */
  onOverflow(): void
  now(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

type RelayQueue = {
  push(pair: PairId, bytes: Uint8Array): void
  close(): void
}

/** A message counts for at least this much, of the share and of what waits: tiny ones are no way round either. */
const MESSAGE_MIN_BYTES = 1_024

/**
 * Relay bytes of one peer, held to its share of the host's bandwidth. What is over the share waits, in order:
 * dropping would tear the stream, and the waiting slows the sender down through its credits.
 */
export function createRelayQueue(deps: RelayQueueDeps): RelayQueue {
  const bucket = createTokenBucket(
    { perSecond: RELAY_BYTES_PER_SECOND, burst: RELAY_BYTES_PER_SECOND },
    () => deps.now(),
  )
  const waiting: { pair: PairId; bytes: Uint8Array }[] = []
  let waitingBytes = 0
  let cancel: (() => void) | null = null
  let closed = false

  function drain(): void {
    cancel = null
    while (!closed) {
      const next = waiting[0]
      if (!next) return
      const cost = costOf(next.bytes)
      if (!bucket.take(cost)) {
        cancel = deps.later(Math.ceil(bucket.waitMs(cost)), drain)
        return
      }
      waiting.shift()
      waitingBytes -= cost
      deps.forward(next.pair, next.bytes)
    }
  }

  return {
    push(pair, bytes) {
      if (closed) return
      const cost = costOf(bytes)
      if (waitingBytes + cost > RELAY_QUEUE_BYTES) {
        deps.onOverflow()
        return
      }
      waiting.push({ pair, bytes })
      waitingBytes += cost
      if (cancel === null) drain()
    },
    close() {
      closed = true
      cancel?.()
      waiting.length = 0
    },
  }
}

function costOf(bytes: Uint8Array): number {
  return Math.max(bytes.byteLength, MESSAGE_MIN_BYTES)
}
