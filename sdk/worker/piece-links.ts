import { CrowdError, toCrowdError } from '../core/errors.ts'
import type { PairId, PieceHash } from '../core/ids.ts'
import { blockPieces, type Manifest } from '../core/model/manifest.ts'
import type { Channel, Connector, PairOrder } from '../net/channel.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { PeerPieces } from '../storage/peer-pieces.ts'
import type { ShardStore } from '../storage/shard-store.ts'
import { createPieceServer } from './piece-server.ts'
import { createPieceSource, type PieceSource } from './piece-source.ts'

export type PieceLinksDeps = {
  readonly connector: Pick<Connector, 'connect'>
  send(message: ClientMessage): void
  readonly store: Pick<ShardStore, 'list' | 'read'>
  /** The served model's. */
  manifest(): Manifest | null
  isComputing(): boolean
  now(): number
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

/** The links of one worker over which pieces go: it fetches over those that it begins, and gives over the others. */
export type PieceLinks = {
  readonly peers: PeerPieces
  /** A fetch begins, and so many links for it are ordered. */
  expect(sources: number): void
  open(order: PairOrder): void
  close(pair: PairId, reason: string): void
  closeAll(reason: string): void
}

type Entry = {
  readonly order: PairOrder
  readonly abort: AbortController
  channel: Channel | null
  source: PieceSource | null
  /** What the other end did wrong, for the host. */
  wrong: CrowdError | null
}

export function createPieceLinks(deps: PieceLinksDeps): PieceLinks {
  const entries = new Map<PairId, Entry>()
  const handlers = new Set<() => void>()
  const isPiece = createPieceNames(deps.manifest)
  const server = createPieceServer({ ...deps, isPiece })
  /** Links that the host has announced and not ordered yet. */
  let outstanding = 0

  function changed(): void {
    for (const handler of [...handlers]) handler()
  }

  async function connect(entry: Entry): Promise<void> {
    const { order, abort } = entry
    try {
      const channel = await deps.connector.connect(order, abort.signal)
      if (entries.get(order.pair) !== entry) {
        channel.close('not wanted any more')
        return
      }
      entry.channel = channel
      channel.onClose(() => lost(entry))
      if (order.initiator) entry.source = sourceOver(channel, entry)
      else server.serve(channel)
      report(entry, 'open')
      changed()
    } catch (thrown) {
      lost(entry, toCrowdError(thrown))
    }
  }

  function sourceOver(channel: Channel, entry: Entry): PieceSource {
    return createPieceSource({
      channel,
      isPiece,
      onChange: changed,
      onWrong(reason) {
        entry.wrong = new CrowdError('piece-corrupt', reason)
      },
      now: deps.now,
      later: deps.later,
    })
  }

  function lost(entry: Entry, thrown?: CrowdError): void {
    if (entries.get(entry.order.pair) !== entry) return
    entries.delete(entry.order.pair)
    entry.abort.abort()
    entry.channel?.close(thrown?.message ?? 'closed')
    report(entry, 'closed')
    changed()
  }

  function report({ order, channel, wrong }: Entry, state: 'open' | 'closed'): void {
    deps.send({
      kind: 'link-state',
      pair: order.pair,
      attempt: order.attempt,
      state,
      path: channel?.path ?? 'direct',
      rttMs: channel?.stats().rttMs ?? null,
      ...(wrong === null ? {} : { error: wrong.toWire() }),
    })
  }

  function drop(entry: Entry, reason: string): void {
    entries.delete(entry.order.pair)
    entry.abort.abort()
    entry.channel?.close(reason)
  }

  return {
    peers: {
      get awaited() {
        if (outstanding > 0) return true
        return [...entries.values()].some(
          ({ order, source }) => order.initiator && source?.ready !== true,
        )
      },
      list: () => [...entries.values()].flatMap(({ source }) => source ?? []),
      onChange(handler) {
        handlers.add(handler)
        return () => handlers.delete(handler)
      },
    },
    expect(sources) {
      outstanding = sources
    },
    open(order) {
      if (entries.has(order.pair)) return
      const entry = {
        order,
        abort: new AbortController(),
        channel: null,
        source: null,
        wrong: null,
      }
      entries.set(order.pair, entry)
      if (order.initiator) outstanding = Math.max(0, outstanding - 1)
      changed()
      void connect(entry)
    },
    close(pair, reason) {
      const entry = entries.get(pair)
      if (entry === undefined) return
      drop(entry, reason)
      changed()
    },
    closeAll(reason) {
      for (const entry of [...entries.values()]) drop(entry, reason)
      outstanding = 0
      changed()
    },
  }
}

/** Whether a piece is one of the model's, of which there is one at a time. */
function createPieceNames(manifest: () => Manifest | null): (hash: PieceHash) => boolean {
  let known: { readonly of: Manifest; readonly names: ReadonlySet<PieceHash> } | null = null
  return (hash) => {
    const of = manifest()
    if (of === null) return false
    if (known?.of !== of) {
      const names = of.blocks.flatMap(blockPieces).map(({ sha256 }) => sha256)
      known = { of, names: new Set(names) }
    }
    return known.names.has(hash)
  }
}
