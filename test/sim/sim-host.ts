import { toCrowdError, type CrowdError } from '../../sdk/core/errors.ts'
import type { PairId } from '../../sdk/core/ids.ts'
import { BAD_MESSAGES_MAX } from '../../sdk/core/limits.ts'
import type { SwarmEvent } from '../../sdk/core/swarm/events.ts'
import type { SwarmModel, SwarmState } from '../../sdk/core/swarm/state.ts'
import type { Timers } from '../../sdk/net/timers.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import { parseClientMessage, parseServerMessage } from '../../sdk/protocol/parse.ts'
import type { ServerMessage } from '../../sdk/protocol/server-to-client.ts'
import type { PeerConnection, PeerEntry, PeerHandle } from '../../signaling/peer-connection.ts'
import { createSwarmService, type SwarmService } from '../../signaling/swarm-service.ts'

/** What comes out of a socket at the peer's end. */
export type SocketEvents = {
  message(message: ServerMessage): void
  relay(pair: PairId, bytes: Uint8Array): void
  closed(reason: string): void
}

/** A peer's end of its socket to the host. */
export type HostSocket = {
  send(message: ClientMessage): void
  relay(pair: PairId, bytes: Uint8Array): void
  /** A polite end: what was sent before arrives. */
  end(): void
  /** Nothing arrives any more, either way; the host notices after so long. */
  abandon(afterMs: number): void
}

/** The host of a simulated swarm: the real service, behind sockets with delays. */
export type SimHost = {
  connect(entry: PeerEntry, delayMs: () => number, events: SocketEvents): HostSocket
  state(): SwarmState
  /** The process dies and another one starts, with nothing of what the first one knew. */
  restart(): void
  /** Why messages were refused, each with its sender. */
  readonly refused: readonly string[]
  close(): void
}

export type SimHostDeps = {
  readonly clock: Timers
  readonly model: SwarmModel
  readonly minStages: number
  readonly random: () => number
  observe(event: SwarmEvent, after: SwarmState): void
  /** Called before the new process begins. */
  onRestart(): void
}

/** Long enough for somebody to ask on. */
const RETAIN_MS = 5_000

/** As in signaling/server.ts. */
const TICK_MS = 100

export function createSimHost(deps: SimHostDeps): SimHost {
  const { clock, random } = deps
  const refused: string[] = []
  const sockets = new Set<Socket>()
  let starts = 0
  let service = start()
  let stopTicking = clock.after(TICK_MS, tick)

  function start(): SwarmService {
    starts += 1
    return createSwarmService({
      model: deps.model,
      // Kept sessions must be gone before leaks are looked for.
      retainMs: RETAIN_MS,
      minStages: deps.minStages,
      iceServers: [],
      now: clock.now,
      firstSession: 1 + Math.floor(random() * 0xffff_0000),
      pairPrefix: `s${starts}`,
      origins: () => [],
      observe: deps.observe,
    })
  }

  function tick(): void {
    service.tick()
    stopTicking = clock.after(TICK_MS, tick)
  }

  return {
    connect(entry, delayMs, events) {
      const socket = openSocket({ clock, entry, delayMs, events, refused }, () => service)
      sockets.add(socket)
      return socket.peerEnd
    },
    state: () => service.state(),
    restart() {
      service.close()
      for (const socket of sockets) socket.breakOff('the host is gone')
      sockets.clear()
      deps.onRestart()
      service = start()
    },
    refused,
    close() {
      stopTicking()
      service.close()
    },
  }
}

type Socket = { readonly peerEnd: HostSocket; breakOff(reason: string): void }

type SocketDeps = {
  readonly clock: Timers
  readonly entry: PeerEntry
  delayMs(): number
  readonly events: SocketEvents
  readonly refused: string[]
}

/** As signaling/socket-gateway.ts, without the socket. */
function openSocket(deps: SocketDeps, service: () => SwarmService): Socket {
  const { clock, entry, events } = deps
  const up = createPipe(deps)
  const down = createPipe(deps)
  let handle: PeerHandle | null = null
  let bad = 0

  const connection: PeerConnection = {
    send(message) {
      // Pages show snapshots; workers and askers don't read them.
      if (message.kind === 'swarm') return
      const parsed = parseServerMessage(message)
      if (!parsed.ok) throw parsed.error
      down.put(() => events.message(parsed.message))
    },
    sendRelay: (pair, bytes) => down.put(() => events.relay(pair, bytes)),
    close: hangUp,
  }

  function hangUp(reason: string): void {
    up.close()
    down.put(() => events.closed(reason))
    down.close()
  }

  /** A rule that was broken is its sender's fault; anything else is a fault of the host and ends the simulation. */
  function guarded(work: () => void): void {
    try {
      work()
    } catch (thrown) {
      const error = toCrowdError(thrown)
      if (error.code === 'internal') throw error
      refuse(error)
    }
  }

  function refuse(error: CrowdError): void {
    deps.refused.push(`${entry.peer}: ${error.code}: ${error.message}`)
    bad += 1
    connection.send({ kind: 'refused', error: error.toWire() })
    if (handle !== null && bad < BAD_MESSAGES_MAX) return
    hangUp(error.message)
    gone()
  }

  function receive(message: ClientMessage): void {
    const parsed = parseClientMessage(message)
    guarded(() => {
      if (!parsed.ok) throw parsed.error
      handle?.receive(parsed.message)
    })
  }

  function gone(): void {
    handle?.closed()
  }

  up.put(() =>
    guarded(() => {
      handle = service().join(entry, connection)
    }),
  )
  return {
    peerEnd: {
      send: (message) => up.put(() => receive(message)),
      relay: (pair, bytes) => up.put(() => void handle?.relay(pair, bytes)),
      end() {
        up.put(gone)
        up.close()
        down.cut()
      },
      abandon(afterMs) {
        up.cut()
        down.cut()
        clock.after(afterMs, gone)
      },
    },
    breakOff(reason) {
      up.cut()
      down.cut()
      handle = null
      clock.after(0, () => events.closed(reason))
    },
  }
}

/** One direction of a socket: in order, late, and at an end one day. */
function createPipe({ clock, delayMs }: Pick<SocketDeps, 'clock' | 'delayMs'>) {
  let lastAt = 0
  let isClosed = false
  let isCut = false
  return {
    put(task: () => void): void {
      if (isClosed || isCut) return
      lastAt = Math.max(lastAt, clock.now() + delayMs())
      clock.after(lastAt - clock.now(), () => {
        if (!isCut) task()
      })
    },
    /** Takes nothing more; what is on its way arrives. */
    close(): void {
      isClosed = true
    },
    cut(): void {
      isCut = true
    },
  }
}
