import { CrowdError } from '../core/errors.ts'
import type { Lane, Link } from './channel.ts'
import { createLinkEvents, type LinkEvents } from './link-events.ts'
import type { Timers } from './timers.ts'

export type MemoryLinkOptions = {
  /** One way, ms. */
  readonly latencyMs?: number
  /** Nothing moves until deliver() is called. */
  readonly manual?: boolean
}

/** Two ends of a link in one process, and the hands of a test on the wire between them. */
export type MemoryWire = {
  readonly a: Link
  readonly b: Link
  /** Messages on the wire, both ways. */
  readonly waiting: number
  /** Manual mode: moves up to `count` messages, control before bulk. Returns how many moved. */
  deliver(count?: number): number
  /** From now on messages vanish and nobody is told, as when a machine loses its network. */
  cut(): void
  /** The transport itself breaks: both ends see the close. */
  break(reason: string): void
}

/** `message: null` = the sender closed its end. */
type Parcel = { readonly lane: Lane; readonly message: Uint8Array | null; readonly to: End }
type End = { readonly events: LinkEvents; readonly buffered: Record<Lane, number> }

/** A link in memory: reliable and in order per lane, control before bulk. */
export function createMemoryWire(
  deps: { timers: Timers },
  options: MemoryLinkOptions = {},
): MemoryWire {
  const latencyMs = options.latencyMs ?? 0
  const ends: [End, End] = [newEnd(), newEnd()]
  const parcels: Record<Lane, Parcel[]> = { control: [], bulk: [] }
  let isCut = false

  function moveOne(): boolean {
    const parcel = parcels.control.shift() ?? parcels.bulk.shift()
    if (parcel === undefined) return false
    const { lane, message, to } = parcel
    if (message === null) {
      if (!isCut) to.events.close('transport: closed by the other end')
      return true
    }
    const from = to === ends[0] ? ends[1] : ends[0]
    from.buffered[lane] -= message.length
    if (!isCut) to.events.message(lane, message)
    if (from.buffered.bulk === 0) from.events.drain()
    return true
  }

  function put(parcel: Parcel): void {
    parcels[parcel.lane].push(parcel)
    if (options.manual === true) return
    if (latencyMs === 0) queueMicrotask(moveOne)
    else deps.timers.after(latencyMs, moveOne)
  }

  function linkOf(own: End, other: End): Link {
    return {
      path: 'local',
      send(lane, message) {
        if (own.events.closed) throw new CrowdError('link-closed', 'the link is closed')
        if (isCut) return
        own.buffered[lane] += message.length
        // A copy, as a network makes: what the sender does with its buffer later must not be seen.
        put({ lane, message: new Uint8Array(message), to: other })
      },
      bufferedBytes: (lane) => own.buffered[lane],
      onDrain: own.events.onDrain,
      onMessage: own.events.onMessage,
      onClose: own.events.onClose,
      close(reason) {
        if (own.events.closed) return
        own.events.close(reason)
        // Behind what was sent before, as on a real transport.
        put({ lane: 'bulk', message: null, to: other })
      },
    }
  }

  return {
    a: linkOf(ends[0], ends[1]),
    b: linkOf(ends[1], ends[0]),
    get waiting() {
      return parcels.control.length + parcels.bulk.length
    },
    deliver(count = Number.POSITIVE_INFINITY) {
      let moved = 0
      while (moved < count && moveOne()) moved += 1
      return moved
    },
    cut() {
      isCut = true
    },
    break(reason) {
      for (const end of ends) end.events.close(reason)
    },
  }
}

function newEnd(): End {
  return { events: createLinkEvents(), buffered: { control: 0, bulk: 0 } }
}
