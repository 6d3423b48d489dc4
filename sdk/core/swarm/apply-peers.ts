import type { PeerId } from '../ids.ts'
import { blockPieces } from '../model/manifest.ts'
import { updateSpeed, type Speed } from '../plan/speed.ts'
import { createWork } from '../plan/work.ts'
import { failedServing, halved, STRIKES_MAX } from './apply-faults.ts'
import { replanned, withPeer } from './change-peer.ts'
import type { SwarmEvent } from './events.ts'
import { forgotten } from './hops.ts'
import type { Assignment, PairState, PeerState, SwarmState } from './state.ts'

type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { kind: Kind }>

/** A returning device keeps its place, but what it holds must be confirmed and its links made anew. */
export function peerJoined(
  state: SwarmState,
  event: EventOf<'peer-joined'>,
  now: number,
): SwarmState {
  const former = state.peers.get(event.peer)
  const { name, role } = event
  const fresh: PeerState = {
    peer: event.peer,
    name,
    role,
    droppedAt: null,
    heardAt: null,
    silence: null,
    computing: false,
    pledgeDueSince: now,
    pledge: null,
    pledged: false,
    sharesPieces: event.sharesPieces ?? false,
    accusers: [],
    hiddenSince: null,
    assignment: null,
    stepMs: null,
    speed: null,
    steps: 0,
    tokens: 0,
    computedAt: null,
    memoryLimit: null,
    shrunk: false,
    setAside: null,
    strikes: 0,
    struckAt: null,
    doubts: 0,
    goodAnswers: 0,
  }
  const peer = former ? returned(former, fresh) : fresh
  const peers = new Map(state.peers).set(event.peer, peer)
  return replanned({ ...state, peers, pairs: pairsBroken(state, event.peer, now) })
}

function returned(former: PeerState, fresh: PeerState): PeerState {
  const { stepMs, speed, tokens, memoryLimit, strikes, doubts } = former
  const { shrunk, struckAt, goodAnswers, assignment, pledge, hiddenSince } = former
  return {
    ...fresh,
    hiddenSince,
    accusers: former.accusers,
    pledge,
    assignment: assignment === null ? null : unconfirmed(assignment),
    stepMs,
    speed,
    tokens,
    memoryLimit,
    shrunk,
    strikes,
    struckAt,
    doubts,
    goodAnswers,
    // A reload is a new chance after a failed load, not after sessions broken again and again.
    setAside: strikes >= STRIKES_MAX ? former.setAside : null,
  }
}

/** The order is given again with a new number as soon as the device pledged. */
function unconfirmed(assignment: Assignment): Assignment {
  return { ...assignment, number: 0, state: 'ordered', doneBytes: 0, fetchedBytes: 0, peerBytes: 0 }
}

export function peerDropped(
  state: SwarmState,
  event: EventOf<'peer-dropped'>,
  now: number,
): SwarmState {
  return replanned(withPeer(state, event.peer, (peer) => ({ ...peer, droppedAt: now })))
}

export function peerGone(state: SwarmState, peer: PeerId): SwarmState {
  if (!state.peers.has(peer)) return state
  const peers = new Map(state.peers)
  peers.delete(peer)
  const pairs = new Map(
    [...state.pairs].filter(([, pair]) => pair.from !== peer && pair.to !== peer),
  )
  return replanned({ ...state, peers, pairs, knownHops: forgotten(state, peer) })
}

/** Whoever was not heard for a while counts again at once; whoever falls asleep is silent from now on. */
export function beat(state: SwarmState, event: EventOf<'beat'>, now: number): SwarmState {
  const before = state.peers.get(event.peer)?.silence ?? null
  const silence = event.asleep === true ? 'short' : null
  const { computing } = event
  const next = withPeer(state, event.peer, (peer) => ({
    ...peer,
    heardAt: now,
    silence,
    computing,
  }))
  return before === silence ? next : replanned(next)
}

/** While the silence is short only routes go round the device: it may be back before others could take over. */
export function peerSilent(state: SwarmState, event: EventOf<'peer-silent'>): SwarmState {
  const { silence } = event
  return replanned(withPeer(state, event.peer, (peer) => ({ ...peer, silence })))
}

function pairsBroken(state: SwarmState, peer: PeerId, now: number): SwarmState['pairs'] {
  const closed = (pair: PairState): PairState => ({
    ...pair,
    state: 'closed',
    openEnds: [],
    since: now,
    failures: 0,
  })
  return new Map(
    [...state.pairs].map(([id, pair]) => [
      id,
      pair.from === peer || pair.to === peer ? closed(pair) : pair,
    ]),
  )
}

/** A new pledge gives a failed device another chance, but not one that keeps breaking sessions. */
export function pledged(state: SwarmState, event: EventOf<'pledged'>, now: number): SwarmState {
  return replanned(
    withPeer(state, event.peer, (peer) => ({
      ...peer,
      pledge: event.pledge,
      hiddenSince: event.pledge.hidden ? (peer.hiddenSince ?? now) : null,
      pledged: event.revision === state.model.revision,
      setAside: peer.strikes >= STRIKES_MAX || !raised(peer, event) ? peer.setAside : null,
    })),
  )
}

export function pledgeExpired(state: SwarmState, peer: PeerId): SwarmState {
  return replanned(
    withPeer(state, peer, (before) => ({ ...before, pledge: null, assignment: null })),
  )
}

function raised(peer: PeerState, event: EventOf<'pledged'>): boolean {
  return (
    peer.pledge === null ||
    peer.pledge.memoryBytes !== event.pledge.memoryBytes ||
    peer.pledge.provider !== event.pledge.provider
  )
}

export function stageReported(
  state: SwarmState,
  event: EventOf<'stage-reported'>,
  now: number,
): SwarmState {
  const before = state.peers.get(event.peer)?.assignment
  if (before?.number !== event.assignment || before.range === null) return state
  const peerBytes = Math.min(event.peerBytes ?? 0, event.fetchedBytes)
  const counted = withPieceBytes(state, before, { ...event, peerBytes })
  const next = withPeer(counted, event.peer, (peer) => {
    const assignment: Assignment = {
      ...before,
      state: event.state,
      doneBytes: event.doneBytes,
      totalBytes: event.totalBytes,
      fetchedBytes: event.fetchedBytes,
      peerBytes,
    }
    if (event.state === 'failed')
      return failed(state, { ...peer, assignment }, { event, before, now })
    return {
      ...peer,
      assignment,
      pledge: event.state === 'ready' ? stored(state, peer) : peer.pledge,
    }
  })
  return before.state === event.state ? next : replanned(blamed(next, event))
}

type Fetched = { readonly fetchedBytes: number; readonly peerBytes: number }

/** What is new since the last report; a device that takes back what it said counts nothing. */
function withPieceBytes(state: SwarmState, before: Fetched, after: Fetched): SwarmState {
  const peers = Math.max(0, after.peerBytes - before.peerBytes)
  const all = Math.max(0, after.fetchedBytes - before.fetchedBytes)
  if (all === 0) return state
  const { pieceBytes } = state
  return {
    ...state,
    pieceBytes: {
      host: pieceBytes.host + Math.max(0, all - peers),
      peers: pieceBytes.peers + Math.min(all, peers),
    },
  }
}

/** A device that holds its blocks has stored their pieces, whatever it said when it pledged. */
function stored(state: SwarmState, peer: PeerState): PeerState['pledge'] {
  const { pledge, assignment } = peer
  if (pledge === null || !assignment?.range) return pledge
  const { start, end } = assignment.range
  const held = state.model.blocks.slice(start, end).flatMap(blockPieces)
  return { ...pledge, cached: new Set([...pledge.cached, ...held.map(({ sha256 }) => sha256)]) }
}

/** A model that no device can load is given up, with the reason of the last one that tried. */
function blamed(state: SwarmState, event: EventOf<'stage-reported'>): SwarmState {
  if (event.state !== 'failed' || state.change?.phase !== 'loading') return state
  const name = state.peers.get(event.peer)?.name ?? ''
  const said = event.error ?? { code: 'stage-failed', message: 'the device gave no reason' }
  const error = { ...said, message: `${name || 'a device'}: ${said.message}`.slice(0, 500) }
  return { ...state, change: { ...state.change, error } }
}

/** Out of memory: half of what was tried. Anything else: not used until it pledges something else. */
function failed(
  state: SwarmState,
  peer: PeerState,
  report: {
    readonly event: EventOf<'stage-reported'>
    readonly before: Assignment
    readonly now: number
  },
): PeerState {
  const { event, before, now } = report
  const reason = event.error?.message ?? 'the device gave no reason'
  if (event.error?.code !== 'out-of-memory') return { ...peer, setAside: reason }
  return before.state === 'ready'
    ? failedServing(state, peer, { reason, now })
    : halved(state, peer)
}

/** A new speed matters to the router only where it differs clearly from the last one. */
const SPEED_CHANGE = 0.3

export function statsReported(
  state: SwarmState,
  event: EventOf<'stats-reported'>,
  now: number,
): SwarmState {
  const peer = state.peers.get(event.peer)
  if (peer?.assignment?.number !== event.assignment) return state
  const { steps, tokens } = event
  const measuredMs = measured(event)
  const stepMs = measuredMs ?? peer.stepMs
  const computedAt = steps === peer.steps ? peer.computedAt : now
  const speed = measuredSpeed(state, peer, measuredMs)
  const told = { stepMs, speed, steps, tokens, computedAt }
  const next = withPeer(state, event.peer, (before) => ({ ...before, ...told }))
  if (speed?.settledMs !== peer.speed?.settledMs) return replanned(next)
  return isOtherStep(peer.stepMs ?? 0, stepMs ?? 0) ? { ...next, links: next.links + 1 } : next
}

/** 0 is less than its clock can tell: no reason to believe that it takes no time. */
function measured({ stepMs }: EventOf<'stats-reported'>): number | null {
  return stepMs === 0 ? null : stepMs
}

function isOtherStep(before: number, after: number): boolean {
  return Math.abs(after - before) > before * SPEED_CHANGE
}

/** A measurement belongs to the device: it says how fast it will be with any other range. */
function measuredSpeed(state: SwarmState, peer: PeerState, stepMs: number | null): Speed | null {
  const range = peer.assignment?.range
  if (stepMs === null || !range || peer.pledge === null) return peer.speed
  const layers = createWork(state.model).layers(peer.pledge.provider, range)
  return layers === 0 ? peer.speed : updateSpeed(peer.speed, stepMs / layers)
}

export function assigned(state: SwarmState, event: EventOf<'assigned'>): SwarmState {
  const assignment: Assignment = {
    number: state.nextAssignment,
    range: event.range,
    keep: event.keep,
    reason: event.reason,
    state: 'ordered',
    doneBytes: 0,
    totalBytes: 0,
    fetchedBytes: 0,
    peerBytes: 0,
  }
  const next = withPeer(state, event.peer, (peer) => ({ ...peer, assignment, stepMs: null }))
  return {
    ...next,
    nextAssignment: state.nextAssignment + 1,
    links: state.links + 1,
    sourcesSoughtAt: -Infinity,
  }
}
