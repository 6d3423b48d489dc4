import { CrowdError, toCrowdError } from '../core/errors.ts'
import type { PairId, PeerId } from '../core/ids.ts'
import { SESSION_OPEN_MS } from '../core/limits.ts'
import type { Channel, Connector, PairOrder } from '../net/channel.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import type { WorkerSnapshot } from './worker-snapshot.ts'

export type LinksDeps = {
  connector: Connector
  send(message: ClientMessage): void
  /** A frame that makes this throw closes its link: the other end broke the rules. */
  onFrame(peer: PeerId, frame: Uint8Array): void
  /** A channel that was open is gone. */
  onLost(pair: PairId, reason: string): void
  onChange(): void
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

type Entry = {
  readonly order: PairOrder
  readonly abort: AbortController
  readonly opened: Deferred<Channel>
  channel: Channel | null
  closed: boolean
}

/** The channels of one worker, by pair: opened when the server says so, replaced by a higher attempt. */
export type Links = {
  open(order: PairOrder): void
  close(pair: PairId, reason: string): void
  /** The open channel of a pair; waits for it. @throws CrowdError timeout, link-closed */
  channel(pair: PairId): Promise<Channel>
  /** A peer broke the rules: its links close, and it hears why. */
  reject(peer: PeerId, reason: string): void
  list(): WorkerSnapshot['links']
  /** Tells the server about every open link again, after a reconnect. */
  announce(): void
  closeAll(reason: string): void
}

export function createLinks(deps: LinksDeps): Links {
  const entries = new Map<PairId, Entry>()
  /** Whoever waits for a pair that the server has not ordered yet. */
  const waiting = new Map<PairId, Deferred<Channel>>()

  function open(order: PairOrder): void {
    const former = entries.get(order.pair)
    if (former !== undefined && former.order.attempt >= order.attempt) return
    if (former !== undefined) {
      const wasOpen = former.channel !== null && !former.closed
      drop(former, 'replaced')
      // Frames may have been on their way: sessions that use the link can't go on as if nothing was.
      if (wasOpen) deps.onLost(order.pair, 'replaced by a new attempt')
    }
    const entry: Entry = {
      order,
      abort: new AbortController(),
      opened: waiting.get(order.pair) ?? createDeferred<Channel>(),
      channel: null,
      closed: false,
    }
    waiting.delete(order.pair)
    entries.set(order.pair, entry)
    deps.onChange()
    void connect(entry)
  }

  async function connect(entry: Entry): Promise<void> {
    try {
      const channel = await deps.connector.connect(entry.order, entry.abort.signal)
      if (entry.closed) {
        channel.close('not wanted any more')
        return
      }
      entry.channel = channel
      channel.onFrame((frame) => deps.onFrame(entry.order.peer, frame))
      channel.onClose((reason) => lost(entry, reason))
      entry.opened.resolve(channel)
      report(entry)
      deps.onChange()
    } catch (thrown) {
      lost(entry, toCrowdError(thrown, 'link-closed').message)
    }
  }

  function lost(entry: Entry, reason: string): void {
    if (entry.closed) return
    drop(entry, reason)
    report(entry)
    deps.onLost(entry.order.pair, reason)
    deps.onChange()
  }

  function drop(entry: Entry, reason: string): void {
    entry.closed = true
    entry.abort.abort()
    entry.channel?.close(reason)
    entry.opened.reject(new CrowdError('link-closed', `link to ${entry.order.peer}: ${reason}`))
  }

  function report(entry: Entry): void {
    const { channel, closed } = entry
    deps.send({
      kind: 'link-state',
      pair: entry.order.pair,
      attempt: entry.order.attempt,
      state: closed ? 'closed' : 'open',
      path: channel?.path ?? 'direct',
      rttMs: channel?.stats().rttMs ?? null,
    })
  }

  return {
    open,
    close(pair, reason) {
      const entry = entries.get(pair)
      if (entry === undefined) return
      entries.delete(pair)
      const wasOpen = entry.channel !== null && !entry.closed
      drop(entry, reason)
      if (wasOpen) deps.onLost(pair, reason)
      deps.onChange()
    },
    channel(pair) {
      const entry = entries.get(pair)
      const wanted =
        entry !== undefined && !entry.closed
          ? entry.opened
          : (waiting.get(pair) ?? createDeferred<Channel>())
      if (entry === undefined || entry.closed) waiting.set(pair, wanted)
      // The wait of this caller ends at its limit; the link itself may still come up for the next one.
      const result = createDeferred<Channel>()
      wanted.promise.then(result.resolve, result.reject)
      const cancel = deps.later(SESSION_OPEN_MS, () => {
        if (waiting.get(pair) === wanted) waiting.delete(pair)
        result.reject(new CrowdError('timeout', `no link ${pair} within ${SESSION_OPEN_MS} ms`))
      })
      return result.promise.finally(cancel)
    },
    reject(peer, reason) {
      for (const { order, channel } of entries.values()) {
        if (order.peer === peer) channel?.close(reason)
      }
    },
    list() {
      return [...entries.values()].map(({ order, channel, closed }) => ({
        peer: order.peer,
        path: channel?.path ?? null,
        state: closed ? 'closed' : channel === null ? 'opening' : 'open',
        rttMs: channel?.stats().rttMs ?? null,
      }))
    },
    announce() {
      for (const entry of entries.values())
        if (entry.channel !== null && !entry.closed) report(entry)
    },
    closeAll(reason) {
      for (const entry of entries.values()) drop(entry, reason)
      entries.clear()
      for (const wanted of waiting.values()) wanted.reject(new CrowdError('link-closed', reason))
      waiting.clear()
      deps.onChange()
    },
  }
}
