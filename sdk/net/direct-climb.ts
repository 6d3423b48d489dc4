import { toCrowdError } from '../core/errors.ts'
import { CONNECT_MS, CONNECT_TRIES, EARLY_SIGNALS_MAX } from '../core/limits.ts'
import type { PairOrder } from './channel.ts'
import { createChannel, type ChannelOptions, type FrameChannel } from './frame-channel.ts'
import type { PairSignal } from './pair-signal.ts'
import { NO_CANDIDATES, type MakePeerLink, type PeerTry } from './peer-link.ts'
import type { Timers } from './timers.ts'

export type DirectClimb = {
  /** The open channel, or null when direct links won't come about: then the relay is next. Never rejects. */
  run(): Promise<FrameChannel | null>
  accept(signal: PairSignal): void
  /** Gives up at once; run() then returns null. */
  stop(): void
}

export type DirectClimbDeps = {
  readonly order: PairOrder
  readonly makePeerLink: MakePeerLink
  readonly timers: Timers
  readonly sendSignal: (signal: PairSignal) => void
  readonly log: (event: string) => void
}

type Outcome =
  | { readonly kind: 'channel'; readonly channel: FrameChannel }
  | { readonly kind: 'failed'; readonly reason: string; readonly late: boolean }
  /** The initiator has begun this try. */
  | { readonly kind: 'next'; readonly number: number }
  | { readonly kind: 'stopped' }

/** The initiator may have begun a little later than this side. */
const SLACK_MS = 1_000

/**
 * The direct tries of one attempt. The initiator leads: it begins each try and numbers its signals, the other
 * end follows, and a signal of another try never reaches this one's peer.
 */
export function createDirectClimb(deps: DirectClimbDeps, options: ChannelOptions): DirectClimb {
  const { order, timers } = deps
  const signals: { number: number; signal: object }[] = []
  let current: { number: number; peerTry: PeerTry | null } = { number: 1, peerTry: null }
  let interrupt: (outcome: Outcome) => void = () => undefined
  let stopped = false

  async function openOver(peerTry: PeerTry): Promise<Outcome> {
    try {
      const channel = createChannel({ link: await peerTry.link, order, timers }, options)
      await channel.opened
      return { kind: 'channel', channel }
    } catch (thrown) {
      return { kind: 'failed', reason: toCrowdError(thrown).message, late: false }
    }
  }

  function begin(number: number): PeerTry | string {
    try {
      return deps.makePeerLink({
        order,
        // simple-peer's signals are plain objects; anything else would be refused by the other end.
        onSignal: (signal) => deps.sendSignal({ try: number, signal: signal as object }),
      })
    } catch (thrown) {
      return toCrowdError(thrown).message
    }
  }

  async function tryOnce(number: number, limitMs: number): Promise<Outcome> {
    const interrupted = whenInterrupted()
    const peerTry = begin(number)
    if (typeof peerTry === 'string') return { kind: 'failed', reason: peerTry, late: false }
    current = { number, peerTry }
    for (const entry of signals) {
      if (entry.number === number) peerTry.accept(entry.signal)
    }
    const outcome = await limited(Promise.race([openOver(peerTry), interrupted]), limitMs)
    current = { number, peerTry: null }
    if (outcome.kind !== 'channel') peerTry.close()
    return outcome
  }

  function whenInterrupted(): Promise<Outcome> {
    return new Promise((done) => {
      interrupt = done
    })
  }

  function limited(work: Promise<Outcome>, limitMs: number): Promise<Outcome> {
    return new Promise((done) => {
      const cancel = timers.after(limitMs, () => {
        done({ kind: 'failed', reason: `no connection within ${limitMs} ms`, late: true })
      })
      void work.then((outcome) => {
        cancel()
        done(outcome)
      })
    })
  }

  function newestTry(): number {
    return Math.max(1, ...signals.map((entry) => entry.number))
  }

  async function lead(): Promise<FrameChannel | null> {
    for (let number = 1; number <= CONNECT_TRIES && !stopped; number += 1) {
      const outcome = await tryOnce(number, CONNECT_MS)
      if (outcome.kind === 'channel') return outcome.channel
      if (outcome.kind !== 'failed') return null
      deps.log(`direct try ${number} to ${order.peer} failed: ${outcome.reason}`)
      if (outcome.reason === NO_CANDIDATES) return null
    }
    return null
  }

  async function follow(): Promise<FrameChannel | null> {
    const deadlineMs = timers.now() + CONNECT_MS * CONNECT_TRIES + SLACK_MS
    let number = newestTry()
    while (!stopped) {
      let outcome = await tryOnce(number, deadlineMs - timers.now())
      if (outcome.kind === 'failed') {
        deps.log(`direct try ${number} to ${order.peer} failed: ${outcome.reason}`)
        if (outcome.late || outcome.reason === NO_CANDIDATES) return null
        const interrupted = whenInterrupted()
        deps.sendSignal({ try: number, failed: true })
        const begun = newestTry()
        outcome =
          begun > number
            ? { kind: 'next', number: begun }
            : await limited(interrupted, deadlineMs - timers.now())
      }
      if (outcome.kind === 'channel') return outcome.channel
      if (outcome.kind !== 'next') return null
      number = outcome.number
    }
    return null
  }

  return {
    run: () => (order.initiator ? lead() : follow()),
    accept(signal) {
      if (stopped || signal.try < current.number) return
      if ('failed' in signal) {
        if (!order.initiator || signal.try !== current.number) return
        interrupt({ kind: 'failed', reason: 'the other end failed', late: false })
        return
      }
      if (signal.try === current.number && current.peerTry !== null) {
        current.peerTry.accept(signal.signal)
        return
      }
      if (signals.length >= EARLY_SIGNALS_MAX) return
      signals.push({ number: signal.try, signal: signal.signal })
      if (!order.initiator && signal.try > current.number) {
        interrupt({ kind: 'next', number: signal.try })
      }
    },
    stop() {
      stopped = true
      interrupt({ kind: 'stopped' })
    },
  }
}
