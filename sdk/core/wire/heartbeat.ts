import { DEAD_MS, HEARTBEAT_MS, SUSPECT_MS } from '../limits.ts'

export type Liveness = 'alive' | 'suspect' | 'dead'

export type Heartbeat = {
  /** Any message of the other end is a sign of life. */
  heard(nowMs: number): void
  /** Call when the timer fires. A tick that comes far too late means that this device slept. */
  tick(nowMs: number): Liveness
  /** When to tick next, ms from now: a beat, or the moment of death if that is nearer. */
  nextTickMs(nowMs: number): number
  /** Number for the next ping. */
  ping(nowMs: number): number
  pong(number: number, nowMs: number): void
  readonly rttMs: number | null
}

/** Pings whose answers are still told apart; an older answer measures nothing. */
const REMEMBERED = 8
/** Weight of a new sample in the smoothed round trip. */
const WEIGHT = 0.25

/**
 * Decides from times alone whether the other end lives. Silence counts only while this device was awake: after
 * a late tick the other end gets one more full limit, once, since its messages may wait behind the timer.
 */
export function createHeartbeat(startMs: number): Heartbeat {
  let heardMs = startMs
  let tickedMs = startMs
  let excused = false
  let pings = 0
  let rttMs: number | null = null
  const sentMs = new Float64Array(REMEMBERED)

  return {
    heard(nowMs) {
      heardMs = nowMs
      excused = false
    },
    tick(nowMs) {
      const late = nowMs - tickedMs > 2 * HEARTBEAT_MS
      tickedMs = nowMs
      const silentMs = nowMs - heardMs
      if (silentMs < SUSPECT_MS) return 'alive'
      if (silentMs < DEAD_MS) return 'suspect'
      if (!late || excused) return 'dead'
      excused = true
      heardMs = nowMs
      return 'suspect'
    },
    nextTickMs(nowMs) {
      return Math.max(1, Math.min(HEARTBEAT_MS, heardMs + DEAD_MS - nowMs))
    },
    ping(nowMs) {
      pings = (pings + 1) >>> 0
      sentMs[pings % REMEMBERED] = nowMs
      return pings
    },
    pong(number, nowMs) {
      if (number === 0 || number > pings || pings - number >= REMEMBERED) return
      const sample = nowMs - sentMs[number % REMEMBERED]!
      rttMs = rttMs === null ? sample : rttMs + (sample - rttMs) * WEIGHT
    },
    get rttMs() {
      return rttMs
    },
  }
}
