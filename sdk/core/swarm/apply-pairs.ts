import type { PairId } from '../ids.ts'
import type { SwarmEvent } from './events.ts'
import { isOtherHop, remembered } from './hops.ts'
import type { LinkPath, PairState, SwarmState } from './state.ts'

type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { kind: Kind }>

function withPair(
  state: SwarmState,
  pair: PairId,
  change: (pair: PairState) => PairState,
): SwarmState {
  const present = state.pairs.get(pair)
  if (!present) return state
  const next = change(present)
  const isRing = present.purpose === 'ring'
  const isOther = isRing && isOtherHop(present, next)
  const isMoved = next.state !== present.state || next.path !== present.path
  const rerouted = isRing && (isOther || isMoved)
  const freed = !isRing && next.state === 'closed'
  return {
    ...state,
    pairs: new Map(state.pairs).set(pair, next),
    links: rerouted ? state.links + 1 : state.links,
    topology: isOther ? state.topology + 1 : state.topology,
    sourcesSoughtAt: freed ? -Infinity : state.sourcesSoughtAt,
  }
}

export function pairOpened(
  state: SwarmState,
  event: EventOf<'pair-opened'>,
  now: number,
): SwarmState {
  const pair: PairState = {
    pair: `pair-${state.pairPrefix}-${state.nextPair}` as PairId,
    purpose: event.purpose ?? 'ring',
    from: event.from,
    to: event.to,
    attempt: 1,
    state: 'opening',
    openEnds: [],
    path: null,
    rttMs: null,
    relayedBytes: 0,
    since: now,
    failures: 0,
  }
  return {
    ...state,
    pairs: new Map(state.pairs).set(pair.pair, pair),
    nextPair: state.nextPair + 1,
  }
}

export function pairRetried(
  state: SwarmState,
  event: EventOf<'pair-retried'>,
  now: number,
): SwarmState {
  return withPair(state, event.pair, (pair) => ({
    ...pair,
    attempt: pair.attempt + 1,
    state: 'opening',
    openEnds: [],
    since: now,
  }))
}

export function pairClosed(state: SwarmState, event: EventOf<'pair-closed'>): SwarmState {
  const closed = state.pairs.get(event.pair)
  if (!closed) return state
  const pairs = new Map(state.pairs)
  pairs.delete(event.pair)
  if (closed.purpose !== 'ring') return { ...state, pairs, sourcesSoughtAt: -Infinity }
  return { ...state, pairs, knownHops: remembered(state, closed), links: state.links + 1 }
}

const PATH_ORDER: readonly LinkPath[] = ['local', 'direct', 'turn', 'relay']

/** Open once both ends say so; closed as soon as one does. */
export function linkReported(
  state: SwarmState,
  event: EventOf<'link-reported'>,
  now: number,
): SwarmState {
  return withPair(accused(state, event), event.pair, (pair) => {
    const isEnd = pair.from === event.peer || pair.to === event.peer
    if (!isEnd || event.attempt !== pair.attempt || pair.state === 'closed') return pair
    return event.state === 'closed' ? closedBy(pair, now) : openedBy(pair, event, now)
  })
}

/** Noted with who says so, since that may be untrue. Only whoever fetches over a link can know. */
function accused(state: SwarmState, event: EventOf<'link-reported'>): SwarmState {
  const pair = state.pairs.get(event.pair)
  if (event.error?.code !== 'piece-corrupt' || pair?.purpose !== 'pieces') return state
  const source = state.peers.get(pair.to)
  if (pair.from !== event.peer || !source || source.accusers.includes(event.peer)) return state
  const accusers = [...source.accusers, event.peer]
  return { ...state, peers: new Map(state.peers).set(pair.to, { ...source, accusers }) }
}

function openedBy(pair: PairState, event: EventOf<'link-reported'>, now: number): PairState {
  const openEnds = pair.openEnds.includes(event.peer)
    ? pair.openEnds
    : [...pair.openEnds, event.peer]
  const told = {
    ...pair,
    openEnds,
    path: dearer(pair.openEnds.length === 0 ? null : pair.path, event.path),
    rttMs: event.rttMs ?? pair.rttMs,
  }
  if (openEnds.length < 2) return told
  return { ...told, state: 'open', since: pair.state === 'open' ? pair.since : now, failures: 0 }
}

/** Where the ends report different paths the dearer one is believed. */
function dearer(a: LinkPath | null, b: LinkPath): LinkPath {
  return a !== null && PATH_ORDER.indexOf(a) > PATH_ORDER.indexOf(b) ? a : b
}

function closedBy(pair: PairState, now: number): PairState {
  return { ...pair, state: 'closed', openEnds: [], since: now, failures: pair.failures + 1 }
}

export function relayed(state: SwarmState, event: EventOf<'relayed'>): SwarmState {
  const next = withPair(state, event.pair, (pair) => ({
    ...pair,
    relayedBytes: pair.relayedBytes + event.bytes,
  }))
  return { ...next, relayedBytes: state.relayedBytes + event.bytes }
}
