import { CrowdError } from '../../sdk/core/errors.ts'
import type { PeerId } from '../../sdk/core/ids.ts'
import type { Link } from '../../sdk/net/channel.ts'
import type { MakePeerLink, PeerTryDeps } from '../../sdk/net/peer-link.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import { createSimWire, type SimWire, type WireEnd } from './sim-wire.ts'

/** How the network between devices behaves, ms. */
export type LinkWeather = {
  readonly latencyMs: number
  /** Added to a message's latency, from 0 to this much. */
  readonly jitterMs: number
  /** What a direct connection takes until it is there, beside its signals. */
  readonly connectMs: number
  /** 0 = as fast as one likes. */
  readonly bytesPerMs: number
}

/** The network between the devices: direct links that can be cut, delayed and forbidden. */
export type SimLinks = {
  /** One device's WebRTC. */
  maker(peer: PeerId, end: WireEnd): MakePeerLink
  /** Ends what is open between two devices, without a word, and lets nothing new come up. */
  cut(a: PeerId, b: PeerId): void
  heal(a: PeerId, b: PeerId): void
  /** Adds so much to every message between two devices; 0 = as before. */
  delay(a: PeerId, b: PeerId, extraMs: number): void
}

type Offer = { readonly from: PeerId; readonly end: WireEnd }
type Signal = { readonly offer?: string; readonly answer?: string }

export function createSimLinks(deps: {
  readonly clock: Timers
  readonly random: () => number
  readonly weather: LinkWeather
}): SimLinks {
  const { clock, random, weather } = deps
  const offers = new Map<string, Offer>()
  const wires = new Map<string, SimWire>()
  /** Wires that were made between two devices, to be cut. */
  const between = new Map<string, SimWire[]>()
  const blocked = new Set<string>()
  const extra = new Map<string, number>()

  const delayMs = (key: string, bytes: number): number =>
    weather.latencyMs +
    random() * weather.jitterMs +
    (extra.get(key) ?? 0) +
    (weather.bytesPerMs === 0 ? 0 : bytes / weather.bytesPerMs)

  function answer(name: string, peer: PeerId, end: WireEnd): boolean {
    const offer = offers.get(name)
    if (offer === undefined) return false
    offers.delete(name)
    const key = keyOf(offer.from, peer)
    if (blocked.has(key)) return false
    const wire = createSimWire({
      clock,
      delayMs: (bytes) => delayMs(key, bytes),
      a: offer.end,
      b: end,
    })
    wires.set(name, wire)
    between.set(key, [...(between.get(key) ?? []), wire])
    return true
  }

  function begin(peer: PeerId, end: WireEnd, { order, onSignal }: PeerTryDeps) {
    const opening = createOpening()
    const pause = (task: () => void): void => void end.gate.after(weather.connectMs, task)
    if (order.initiator) {
      const name = `wire-${offers.size + wires.size}-${peer}-${order.attempt}-${clock.now()}`
      offers.set(name, { from: peer, end })
      pause(() => onSignal({ offer: name }))
    }
    return {
      link: opening.link,
      accept(signal: unknown) {
        // Signals are opaque to the host and the connector; only this function makes and reads them.
        const { offer, answer: answered } = signal as Signal
        if (offer !== undefined && answer(offer, peer, end)) {
          onSignal({ answer: offer })
          pause(() => opening.resolve(wires.get(offer)?.b))
        }
        if (answered !== undefined) pause(() => opening.resolve(wires.get(answered)?.a))
      },
      close: opening.giveUp,
    }
  }

  return {
    maker: (peer, end) => (order) => begin(peer, end, order),
    cut(a, b) {
      const key = keyOf(a, b)
      blocked.add(key)
      for (const wire of between.get(key) ?? []) wire.cut()
      between.delete(key)
    },
    heal: (a, b) => void blocked.delete(keyOf(a, b)),
    delay: (a, b, extraMs) => void extra.set(keyOf(a, b), extraMs),
  }
}

function keyOf(a: PeerId, b: PeerId): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}

function createOpening() {
  let resolve: (link: Link) => void = () => undefined
  let reject: (error: CrowdError) => void = () => undefined
  let open: Link | null = null
  let isGivenUp = false
  const link = new Promise<Link>((done, failed) => {
    resolve = done
    reject = failed
  })
  link.catch(() => undefined)
  return {
    link,
    /** A wire that the other end never made is never there. */
    resolve(made: Link | undefined) {
      if (made === undefined) return
      if (isGivenUp) made.close('closed: given up')
      open = made
      resolve(made)
    },
    giveUp() {
      isGivenUp = true
      reject(new CrowdError('link-closed', 'given up'))
      open?.close('closed: given up')
    },
  }
}
