import { CrowdError, fromWire } from '../core/errors.ts'
import type { PeerId } from '../core/ids.ts'
import { CREDIT_BYTES } from '../core/limits.ts'
import type { MessageEnd } from '../core/message-end.ts'
import type { BulkLane } from './bulk-lane.ts'
import type { LaneNews, LaneOrder } from './lane-messages.ts'

/** A bulk lane that another thread serves: only its handshake and its numbers pass here, no frames. */
export type DistantLane = BulkLane & {
  readonly id: number
  /** Resolves when the data channel is open. */
  readonly opened: Promise<void>
  say(bytes: Uint8Array): void
  /** For the channel: totals that the other end must hear of, and why the lane can't go on. */
  follow(follower: { grant(consumedTotal: number): void; fault(error: CrowdError): void }): void
}

/** What the link hears of a lane: messages that are no chunks, and the end of the data channel. */
export type LaneListener = { said(bytes: Uint8Array): void; closed(): void }

export type DistantLanes = {
  /** Hands a data channel that is not open yet to the thread; null where that is not possible. */
  adopt(channel: RTCDataChannel, peer: PeerId, listener: LaneListener): DistantLane | null
  /** The thread is there, or there anew. */
  attach(end: MessageEnd<LaneOrder, LaneNews>): void
  /** The thread is gone, and every lane in it. */
  lost(error: CrowdError): void
}

/** What a report says counts this long: a thread that computes reports late. */
const STATS_FRESH_MS = 3_000

type Entry = {
  readonly lane: DistantLane
  readonly receive: (news: LaneNews) => void
}

/** The lanes of this page that its compute thread serves. */
export function createDistantLanes(deps: { now(): number }): DistantLanes {
  const entries = new Map<number, Entry>()
  let end: MessageEnd<LaneOrder, LaneNews> | null = null
  let lastId = 0

  return {
    adopt(channel, peer, listener) {
      if (end === null) return null
      const lane = lastId + 1
      try {
        end.post({ kind: 'adopt', lane, peer, creditBytes: CREDIT_BYTES, channel }, [channel])
      } catch {
        // Not every browser lets a data channel go to another thread; it is served here then.
        return null
      }
      lastId = lane
      const entry = createEntry(lane, {
        ...deps,
        listener,
        post: end.post,
        onEnd: () => entries.delete(lane),
      })
      entries.set(lane, entry)
      return entry.lane
    },
    attach(next) {
      end = next
      next.listen((news) => entries.get(news.lane)?.receive(news))
    },
    lost(error) {
      end = null
      for (const [lane, { receive }] of [...entries]) {
        receive({ kind: 'broken', lane, error: error.toWire() })
      }
      entries.clear()
    },
  }
}

function createEntry(
  id: number,
  deps: {
    readonly listener: LaneListener
    now(): number
    post(order: LaneOrder): void
    onEnd(): void
  },
): Entry {
  const { listener } = deps
  let follower: Parameters<DistantLane['follow']>[0] | null = null
  /** Why the lane can't go on, while nobody follows it yet. */
  let fault: CrowdError | null = null
  let stats: { sentBytes: number; receivedBytes: number; stuckSinceMs: number | null } = {
    sentBytes: 0,
    receivedBytes: 0,
    stuckSinceMs: null,
  }
  let statsAt = 0
  let markOpened: () => void = () => undefined
  let markFailed: (error: CrowdError) => void = () => undefined
  const opened = new Promise<void>((resolve, reject) => {
    markOpened = resolve
    markFailed = reject
  })
  // Whoever waits for it learns of the failure; nobody waiting is not a crash.
  opened.catch(() => undefined)

  function receive(news: LaneNews): void {
    switch (news.kind) {
      case 'opened': {
        markOpened()
        return
      }
      case 'said':
        listener.said(news.bytes)
        return
      case 'grant':
        return follower?.grant(news.consumed)
      case 'broken':
        fault = fromWire(news.error)
        markFailed(fault)
        follower?.fault(fault)
        return
      case 'closed':
        markFailed(new CrowdError('link-closed', 'closed before it opened'))
        listener.closed()
        return
      case 'stats': {
        const { sentBytes, receivedBytes, stuckMs } = news
        statsAt = deps.now()
        stats = {
          sentBytes,
          receivedBytes,
          stuckSinceMs: stuckMs === null ? null : statsAt - stuckMs,
        }
      }
    }
  }

  const lane: DistantLane = {
    id,
    opened,
    say: (bytes) => deps.post({ kind: 'say', lane: id, bytes }),
    follow(next) {
      follower = next
      if (fault !== null) next.fault(fault)
    },
    announced: (windowBytes) => deps.post({ kind: 'announced', lane: id, windowBytes }),
    open: () => deps.post({ kind: 'open', lane: id }),
    granted: (consumed) => deps.post({ kind: 'granted', lane: id, consumed }),
    // The thread pumps by itself.
    pump: () => undefined,
    get stuckSinceMs() {
      return deps.now() - statsAt < STATS_FRESH_MS ? stats.stuckSinceMs : null
    },
    get sentBytes() {
      return stats.sentBytes
    },
    get receivedBytes() {
      return stats.receivedBytes
    },
    fail(error) {
      markFailed(error)
      deps.post({ kind: 'close', lane: id, error: error.toWire() })
      deps.onEnd()
    },
  }
  return { lane, receive }
}
