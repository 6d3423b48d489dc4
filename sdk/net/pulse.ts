import { SEND_STALL_MS } from '../core/limits.ts'
import { createHeartbeat } from '../core/wire/heartbeat.ts'
import type { Timers } from './timers.ts'

export type Pulse = {
  start(): void
  /** Anything came from the other end. */
  heard(): void
  pong(number: number): void
  readonly rttMs: number | null
  stop(): void
}

export type PulseDeps = {
  readonly timers: Timers
  readonly ping: (number: number) => void
  /** Time since which data waits for its next step, in either direction; null when none waits. */
  readonly stuckSinceMs: () => number | null
  /** Called at every beat, for what a transport doesn't tell by itself. */
  readonly onBeat: () => void
  /** Called once. */
  readonly onDead: (reason: string) => void
}

/** The one timer of an open channel: pings, and ends what is silent or stuck. Frames never wait for it. */
export function createPulse(deps: PulseDeps): Pulse {
  const { timers } = deps
  const heartbeat = createHeartbeat(timers.now())
  let stopped = false
  let cancelBeat: () => void = () => undefined

  function beat(): void {
    const nowMs = timers.now()
    if (heartbeat.tick(nowMs) === 'dead') {
      deps.onDead('silence: the other end stopped answering')
      return
    }
    const stuckSinceMs = deps.stuckSinceMs()
    if (stuckSinceMs !== null && nowMs - stuckSinceMs > SEND_STALL_MS) {
      deps.onDead('timeout: the other end stopped moving data')
      return
    }
    deps.ping(heartbeat.ping(nowMs))
    deps.onBeat()
    if (!stopped) cancelBeat = timers.after(heartbeat.nextTickMs(nowMs), beat)
  }

  return {
    start: beat,
    heard: () => heartbeat.heard(timers.now()),
    pong: (number) => heartbeat.pong(number, timers.now()),
    get rttMs() {
      return heartbeat.rttMs
    },
    stop() {
      stopped = true
      cancelBeat()
    },
  }
}
