import { CrowdError, toCrowdError } from '../sdk/core/errors.ts'
import type { PairId, PeerId } from '../sdk/core/ids.ts'
import { PEERS_MAX, SNAPSHOT_MS } from '../sdk/core/limits.ts'
import { apply } from '../sdk/core/swarm/apply.ts'
import { decide } from '../sdk/core/swarm/decide.ts'
import type { ModelObservation, SwarmEvent } from '../sdk/core/swarm/events.ts'
import { emptySwarm, type SwarmModel, type SwarmState } from '../sdk/core/swarm/state.ts'
import { otherEnd } from '../sdk/core/swarm/views.ts'
import type { ClientMessage, ClientMessageOf } from '../sdk/protocol/client-to-server.ts'
import type { ServerMessage } from '../sdk/protocol/server-to-client.ts'
import type { SwarmSnapshot } from '../sdk/protocol/swarm-snapshot.ts'
import { FEATURES, PROTOCOL } from '../sdk/protocol/version.ts'
import { messagesFor, servedModel, type MessageDeps } from './messages.ts'
import type { PeerConnection, PeerEntry, PeerHandle } from './peer-connection.ts'
import { allowed } from './role-kinds.ts'
import { askEvents, cancelEvents, stageEvents } from './session-service.ts'
import { swarmSnapshotOf } from './swarm-snapshot.ts'
import { workerEvent } from './worker-reports.ts'

export type SwarmServiceDeps = MessageDeps & {
  /** Served at first. */
  readonly model: SwarmModel
  readonly minStages: number
  /** Where session numbers begin, unsigned 32-bit, not 0. */
  readonly firstSession: number
  /** How long stages keep caches after an answer, ms; RETAIN_MS when absent. */
  readonly retainMs?: number
  /** Between `pair-` and the number in each pair's id: another one for each start of a host. */
  readonly pairPrefix: string
  /** Where other devices reach this host; known once it listens. */
  origins(): readonly string[]
  /** Hears of every event once it was applied. */
  observe?(event: SwarmEvent, after: SwarmState): void
}

export interface SwarmService {
  /**
   * Lets a peer in that was admitted; a newer connection of the same peer ends the older one.
   * @throws CrowdError pool-full
   */
  join(entry: PeerEntry, connection: PeerConnection): PeerHandle
  snapshot(): SwarmSnapshot
  state(): SwarmState
  /** The operator wants another model served, or what became of that. */
  model(event: ModelObservation): void
  /** Checks time limits and sends a snapshot that is due; called a few times a second. */
  tick(): void
  /** Ends every connection. Idempotent. */
  close(): void
}

type Seat = { readonly entry: PeerEntry; readonly connection: PeerConnection }

/** Ticks come a few times a second; a longer pause, also one within the work for an event, was this process's own. */
const SLEPT_MS = 1_500

/** More rounds than any real change needs: a guard against decisions that undo each other. */
const DECIDE_ROUNDS = 10_000

/** Not a lost connection: the older one must not come back and push the newer out in turn. */
const REPLACED = new CrowdError('replaced', 'this device connected again, in another tab')

/** Holds the state, feeds it with what happens and carries out what is decided. */
export function createSwarmService(deps: SwarmServiceDeps): SwarmService {
  const seats = new Map<PeerId, Seat>()
  let state = emptySwarm(deps)
  /** Something happened since the last snapshot that it would show. */
  let isNews = true
  let shownAt = -Infinity
  let awakeAt = deps.now()
  let closed = false
  let busy = false
  const backlog: SwarmEvent[] = []

  function commit(event: SwarmEvent): void {
    const before = state
    state = apply(state, event, awakeAt)
    isNews ||= event.kind !== 'beat'
    for (const { to, message } of messagesFor(before, event, state, deps))
      seats.get(to)?.connection.send(message)
    deps.observe?.(event, state)
  }

  /** What was sent while this process stood still is read later than this: nobody was silent, and nothing is late. */
  function wake(): void {
    const ms = deps.now() - awakeAt
    if (ms > SLEPT_MS) commit({ kind: 'host-slept', ms })
    awakeAt += ms
  }

  /** Callers in this process may answer a message at once: their events wait until the present ones are done. */
  function dispatch(...events: readonly SwarmEvent[]): void {
    backlog.push(...events)
    if (busy) return
    busy = true
    try {
      for (let round = 0; round < DECIDE_ROUNDS; round++) {
        wake()
        for (let event = backlog.shift(); event; event = backlog.shift()) commit(event)
        const decisions = decide(state, awakeAt)
        if (decisions.length === 0 && backlog.length === 0) return
        for (const decision of decisions) commit(decision)
      }
    } finally {
      busy = false
    }
    throw new CrowdError('internal', 'the host keeps changing its mind')
  }

  const snapshot = (): SwarmSnapshot => swarmSnapshotOf(state, deps.origins())

  function showSnapshot(): void {
    if (!isNews || deps.now() - shownAt < SNAPSHOT_MS) return
    isNews = false
    shownAt = deps.now()
    const message: ServerMessage = { kind: 'swarm', swarm: snapshot() }
    for (const seat of seats.values()) seat.connection.send(message)
  }

  function forward(from: PeerId, signal: ClientMessageOf<'signal'>): void {
    const pair = state.pairs.get(signal.pair)
    if (!pair || (pair.from !== from && pair.to !== from)) return
    if (pair.attempt !== signal.attempt) return
    seats.get(otherEnd(pair, from))?.connection.send(signal)
  }

  function ask(peer: PeerId, message: ClientMessageOf<'ask'>): void {
    try {
      dispatch(...askEvents(state, peer, message))
    } catch (thrown) {
      const error = toCrowdError(thrown).toWire()
      const end = { kind: 'ask-end' as const, request: message.request, timings: null, error }
      seats.get(peer)?.connection.send({ ...end, reason: 'error' })
    }
  }

  function receive(seat: Seat, message: ClientMessage): void {
    const { peer, role } = seat.entry
    if (!allowed(role, message.kind))
      throw new CrowdError('bad-message', `${message.kind} is not for the role ${role}`)
    switch (message.kind) {
      case 'signal':
        forward(peer, message)
        return
      case 'ask':
        ask(peer, message)
        return
      case 'cancel':
        dispatch(...cancelEvents(state, peer, message))
        return
      case 'session-ready':
      case 'session-token':
      case 'session-end':
      case 'session-timings':
      case 'session-step':
      case 'session-failed':
        dispatch(...stageEvents(state, peer, message))
        return
      case 'leave':
        depart(seat)
        return
      case 'pledge':
      case 'stage-state':
      case 'stage-stats':
      case 'link-state':
      case 'beat':
        dispatch(workerEvent(peer, message))
        return
      case 'hello':
        throw new CrowdError('bad-message', 'hello was said already')
    }
  }

  function depart(seat: Seat): void {
    if (seats.get(seat.entry.peer) !== seat) return
    seats.delete(seat.entry.peer)
    dispatch({ kind: 'peer-left', peer: seat.entry.peer })
  }

  /** Workers keep their place for a moment; everybody else is gone with the socket. */
  function lost(seat: Seat): void {
    const { peer, role } = seat.entry
    if (closed || seats.get(peer) !== seat) return
    seats.delete(peer)
    dispatch(role === 'worker' ? { kind: 'peer-dropped', peer } : { kind: 'peer-left', peer })
  }

  function relay(seat: Seat, pairId: PairId, bytes: Uint8Array): boolean {
    const { peer } = seat.entry
    const pair = state.pairs.get(pairId)
    if (seats.get(peer) !== seat || !pair || (pair.from !== peer && pair.to !== peer)) return false
    // Pieces that passed here would cost this host's line twice.
    if (pair.purpose === 'pieces') return false
    const other = seats.get(otherEnd(pair, peer))
    if (!other) return false
    commit({ kind: 'relayed', pair: pairId, bytes: bytes.byteLength })
    other.connection.sendRelay(pairId, bytes)
    return true
  }

  return {
    join(entry, connection) {
      if (closed) throw new CrowdError('signaling-closed', 'the host is stopping')
      const former = seats.get(entry.peer)
      if (isFull(seats, entry))
        throw new CrowdError('pool-full', `the pool holds ${PEERS_MAX} devices and is full`)
      if (former) {
        // It ends as any lost socket does, before the peer is back.
        former.connection.send({ kind: 'refused', error: REPLACED.toWire() })
        lost(former)
        former.connection.close(REPLACED.message)
      }
      const seat: Seat = { entry, connection }
      seats.set(entry.peer, seat)
      connection.send(welcome(entry, state))
      connection.send({ kind: 'swarm', swarm: snapshot() })
      dispatch({ kind: 'peer-joined', ...entry })
      return {
        peer: entry.peer,
        receive: (message) => {
          if (seats.get(entry.peer) === seat) receive(seat, message)
        },
        relay: (pair, bytes) => relay(seat, pair, bytes),
        closed: () => lost(seat),
      }
    },
    snapshot,
    state: () => state,
    model: (event) => dispatch(event),
    tick() {
      if (!closed) dispatch()
      if (!closed) showSnapshot()
    },
    close() {
      if (closed) return
      closed = true
      for (const seat of seats.values()) seat.connection.close('the host is stopping')
      seats.clear()
    },
  }
}

/** Workers and the others are counted apart: many readers must not keep a device away, nor the reverse. */
function isFull(seats: ReadonlyMap<PeerId, Seat>, entry: PeerEntry): boolean {
  let same = 0
  for (const { entry: seated } of seats.values())
    if (seated.peer !== entry.peer && (seated.role === 'worker') === (entry.role === 'worker'))
      same += 1
  return same >= PEERS_MAX
}

function welcome(entry: PeerEntry, state: SwarmState): ServerMessage {
  return {
    kind: 'welcome',
    protocol: PROTOCOL,
    features: [...FEATURES],
    peer: entry.peer,
    name: entry.name,
    ...servedModel(state),
  }
}
