import { CrowdError } from '../../sdk/core/errors.ts'
import type { Lane, Link } from '../../sdk/net/channel.ts'
import { createLinkEvents, type LinkEvents } from '../../sdk/net/link-events.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import type { Gate } from './gate.ts'

export type WireEnd = {
  readonly gate: Gate
  /** What this end's device makes of a message before it goes out; false = it doesn't. */
  tamper(lane: Lane, message: Uint8Array): boolean
}

export type WireDeps = {
  readonly clock: Timers
  /** One way, ms; asked for each message. */
  delayMs(bytes: number): number
  readonly a: WireEnd
  readonly b: WireEnd
}

/** A direct link between two simulated devices. */
export type SimWire = {
  readonly a: Link
  readonly b: Link
  /** From now on messages vanish and nobody is told. */
  cut(): void
}

type End = WireEnd & {
  readonly events: LinkEvents
  /** When the last message of each lane arrives: lanes are in order, but control overtakes bulk. */
  readonly lastAt: Record<Lane, number>
}

export function createSimWire({ clock, delayMs, a, b }: WireDeps): SimWire {
  const ends = { a: endOf(a), b: endOf(b) }
  let isCut = false

  function deliver(to: End, lane: Lane, bytes: number, task: () => void): void {
    const at = Math.max(to.lastAt[lane], clock.now() + delayMs(bytes))
    to.lastAt[lane] = at
    clock.after(at - clock.now(), () => {
      if (!isCut) to.gate.enter(task)
    })
  }

  function linkOf(own: End, other: End): Link {
    return {
      path: 'direct',
      send(lane, message) {
        if (own.events.closed) throw new CrowdError('link-closed', 'the link is closed')
        // A copy, as a network makes: what the sender does with its buffer later must not be seen.
        const sent = new Uint8Array(message)
        if (!own.tamper(lane, sent)) return
        deliver(other, lane, sent.length, () => other.events.message(lane, sent))
      },
      bufferedBytes: () => 0,
      onDrain: own.events.onDrain,
      onMessage: own.events.onMessage,
      onClose: own.events.onClose,
      close(reason) {
        if (own.events.closed) return
        own.events.close(reason)
        // Behind what was sent before, as on a real transport.
        deliver(other, 'bulk', 0, () => other.events.close('transport: closed by the other end'))
      },
    }
  }

  return {
    a: linkOf(ends.a, ends.b),
    b: linkOf(ends.b, ends.a),
    cut() {
      isCut = true
    },
  }
}

function endOf(end: WireEnd): End {
  return { ...end, events: createLinkEvents(), lastAt: { control: 0, bulk: 0 } }
}
