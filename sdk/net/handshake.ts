import { CrowdError } from '../core/errors.ts'
import { HANDSHAKE_REPEAT_MS } from '../core/limits.ts'
import { WIRE_VERSION } from '../core/wire/frame-layout.ts'
import { helloFor, writeLinkMessage, type LinkMessage } from '../core/wire/link-message.ts'
import type { Lane } from './channel.ts'
import type { Timers } from './timers.ts'

export type Greeting = Extract<LinkMessage, { kind: 'hello' | 'ack' }>

export type Handshake = {
  /** Says hello on both lanes, again and again until answered. */
  start(): void
  /** @throws CrowdError bad-frame, protocol-mismatch */
  receive(lane: Lane, message: Greeting): void
  /** True once the other end greeted on that lane: only then may its frames come. */
  heard(lane: Lane): boolean
  stop(): void
}

export type HandshakeDeps = {
  readonly attempt: number
  readonly windowBytes: number
  readonly timers: Timers
  readonly say: (lane: Lane, message: Uint8Array) => void
  /** The other end's window, once. @throws CrowdError bad-frame */
  readonly onWindow: (windowBytes: number) => void
  /** Both lanes were greeted and answered, both ways. */
  readonly onReady: () => void
}

const LANES: readonly Lane[] = ['control', 'bulk']

/**
 * Hello and ack on both lanes, before a link counts as open. Hellos are repeated, because the other end may not listen
 * yet and because some browsers lose a channel's first message.
 */
export function createHandshake(deps: HandshakeDeps): Handshake {
  const helloed = new Set<Lane>()
  const acked = new Set<Lane>()
  let done = false
  let cancelRepeat: () => void = () => undefined

  function greet(): void {
    for (const lane of LANES) {
      if (!done) deps.say(lane, helloFor(lane, deps.attempt, deps.windowBytes))
    }
    if (!done) cancelRepeat = deps.timers.after(HANDSHAKE_REPEAT_MS, greet)
  }

  function stop(): void {
    done = true
    cancelRepeat()
  }

  return {
    start: greet,
    receive(lane, message) {
      // The relay may still carry words of an earlier attempt; they concern nobody.
      if (message.attempt !== deps.attempt) return
      if (message.lane !== lane) {
        throw new CrowdError('bad-frame', `bad ${message.kind}: wrong lane`)
      }
      if (message.kind === 'ack') {
        acked.add(lane)
      } else {
        checkVersion(message.version)
        if (helloed.size === 0) deps.onWindow(message.windowBytes)
        helloed.add(lane)
        deps.say(lane, writeLinkMessage({ kind: 'ack', lane, attempt: deps.attempt }))
      }
      if (done || helloed.size < LANES.length || acked.size < LANES.length) return
      stop()
      deps.onReady()
    },
    heard: (lane) => helloed.has(lane),
    stop,
  }
}

function checkVersion(version: number): void {
  if (version === WIRE_VERSION) return
  throw new CrowdError(
    'protocol-mismatch',
    `wire version ${version}, this side speaks ${WIRE_VERSION}`,
  )
}
