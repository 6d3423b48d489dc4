import { fromWire, type CrowdError, type ErrorCode } from '../../sdk/core/errors.ts'
import type { PairId } from '../../sdk/core/ids.ts'
import { RECONNECT_FIRST_MS, RECONNECT_LAST_MS } from '../../sdk/core/limits.ts'
import type { Signaling, SignalingState } from '../../sdk/net/signaling.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import type { PeerEntry } from '../../signaling/peer-connection.ts'
import type { Gate } from './gate.ts'
import type { HostSocket, SimHost } from './sim-host.ts'

export type SimSignaling = Signaling & {
  /** The socket breaks: what was on its way is lost, both ends notice, the host after so long, and this one comes back. */
  drop(reason: string, hostMs?: number): void
  /** The device is gone without a word; the host notices after so long. */
  abandon(afterMs: number): void
}

export type SimSignalingDeps = {
  readonly gate: Gate
  readonly host: Pick<SimHost, 'connect'>
  readonly entry: PeerEntry
  /** One way, ms; asked for each message. */
  delayMs(): number
  readonly random: () => number
}

/** Refusals that pass with time, as in the real client. */
const RETRIED: ReadonlySet<ErrorCode> = new Set([
  'too-many-requests',
  'timeout',
  'signaling-closed',
])

/** The Signaling port over a socket that only exists in the simulator: delays, losses and reconnects. */
export function createSimSignaling(deps: SimSignalingDeps): SimSignaling {
  const { gate, entry, random } = deps
  const messageHandlers: ((message: ServerMessage) => void)[] = []
  const stateHandlers: ((state: SignalingState) => void)[] = []
  const relayHandlers: ((pair: PairId, message: Uint8Array) => void)[] = []
  let state: SignalingState = { kind: 'connecting' }
  let socket: HostSocket | null = null
  let refusal: CrowdError | null = null
  let tries = 0
  let cancelRetry: () => void = () => undefined

  const isOver = (): boolean => state.kind === 'closed' || state.kind === 'refused'

  function change(next: SignalingState): void {
    if (isOver() && next.kind !== 'closed') return
    state = next
    for (const handler of stateHandlers) handler(next)
  }

  function open(): void {
    if (isOver()) return
    change({ kind: 'connecting' })
    refusal = null
    /** What is left of an earlier socket concerns nobody. */
    const own = (task: () => void): void =>
      gate.enter(() => {
        if (socket === opened) task()
      })
    const opened = deps.host.connect(entry, deps.delayMs, {
      message: (message) => own(() => receive(message)),
      relay: (pair, bytes) => own(() => relayed(pair, bytes)),
      closed: (reason) => own(() => lost(reason)),
    })
    socket = opened
  }

  function receive(message: ServerMessage): void {
    refusal = message.kind === 'refused' ? fromWire(message.error) : null
    if (message.kind === 'welcome') {
      tries = 0
      change({ kind: 'open', welcome: message })
    } else if (state.kind === 'open') for (const handler of messageHandlers) handler(message)
  }

  function relayed(pair: PairId, bytes: Uint8Array): void {
    if (state.kind === 'open') for (const handler of relayHandlers) handler(pair, bytes)
  }

  function lost(reason: string): void {
    socket = null
    if (isOver()) return
    if (refusal !== null && !RETRIED.has(refusal.code)) {
      change({ kind: 'refused', error: refusal })
      return
    }
    change({ kind: 'lost', reason })
    const pauseMs = Math.min(RECONNECT_FIRST_MS * 2 ** tries, RECONNECT_LAST_MS)
    tries += 1
    cancelRetry = gate.after(pauseMs * (0.5 + random()), open)
  }

  return {
    connect() {
      if (socket === null && state.kind === 'connecting') open()
    },
    send(message) {
      if (state.kind !== 'open' || socket === null) return false
      socket.send(message)
      return true
    },
    onMessage: (handler) => void messageHandlers.push(handler),
    onState(handler) {
      stateHandlers.push(handler)
      handler(state)
    },
    relay: {
      send(pair, bytes) {
        if (state.kind !== 'open' || socket === null) return false
        socket.relay(pair, new Uint8Array(bytes))
        return true
      },
      onMessage: (handler) => void relayHandlers.push(handler),
    },
    close() {
      if (state.kind === 'closed') return
      cancelRetry()
      change({ kind: 'closed' })
      socket?.end()
      socket = null
    },
    drop(reason, hostMs = 0) {
      const dropped = socket
      if (dropped === null) return
      dropped.abandon(hostMs)
      gate.enter(() => {
        if (socket === dropped) lost(reason)
      })
    },
    abandon: (afterMs) => socket?.abandon(afterMs),
  }
}
