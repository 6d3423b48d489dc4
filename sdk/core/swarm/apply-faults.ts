import type { PeerId } from '../ids.ts'
import { INCIDENT_MS } from '../limits.ts'
import { createStageSizes } from '../plan/memory.ts'
import { replanned, withPeer } from './change-peer.ts'
import type { SwarmEvent } from './events.ts'
import type { RouteEntry } from './request-state.ts'
import type { PeerState, SwarmState } from './state.ts'

type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { kind: Kind }>

/** Incidents at one device before it is set aside. */
export const STRIKES_MAX = 3
/** Answers that end well, one after the other, until a device's strikes are forgotten: rare faults don't add up. */
const FORGIVEN_AFTER = 5

/** One incident is one strike. It is over after a time, not after a pause, or a device that fails on and on had only one. */
export function struck(state: SwarmState, event: EventOf<'struck'>, now: number): SwarmState {
  const next = withPeer(state, event.peer, (peer) => {
    if (isSameIncident(peer, now)) return peer
    const strikes = peer.strikes + 1
    return {
      ...peer,
      strikes,
      struckAt: now,
      goodAnswers: 0,
      setAside: strikes >= STRIKES_MAX ? event.reason : peer.setAside,
    }
  })
  return next === state ? state : replanned(next)
}

/** A step had no room: not a strike, but the device gets less to hold. */
export function outgrown(state: SwarmState, event: EventOf<'outgrown'>, now: number): SwarmState {
  const next = withPeer(state, event.peer, (peer) =>
    isSameIncident(peer, now) ? peer : { ...smaller(state, peer, event.reason), struckAt: now },
  )
  return next === state ? state : replanned(next)
}

/** A device that served and can't hold what it has: half of that, and the next time it is set aside. What it was struck for just now was this. */
export function failedServing(
  state: SwarmState,
  peer: PeerState,
  failure: { readonly reason: string; readonly now: number },
): PeerState {
  const { reason, now } = failure
  const strikes = isSameIncident(peer, now) ? Math.max(0, peer.strikes - 1) : peer.strikes
  return { ...smaller(state, peer, reason), strikes, struckAt: now }
}

function smaller(state: SwarmState, peer: PeerState, reason: string): PeerState {
  return peer.shrunk ? { ...peer, setAside: reason } : { ...halved(state, peer), shrunk: true }
}

/** At most half of what it was to hold from now on. */
export function halved({ model }: SwarmState, peer: PeerState): PeerState {
  const range = peer.assignment?.range
  if (!range || peer.pledge === null) return peer
  const tried = createStageSizes(model).bytes(peer.pledge.provider, range)
  return { ...peer, memoryLimit: Math.floor(tried / 2) }
}

function isSameIncident({ struckAt }: PeerState, now: number): boolean {
  return struckAt !== null && now - struckAt < INCIDENT_MS
}

/** How much a doubt loses with an answer in which the device had no part. */
const DOUBT_FADES = 0.25

export function doubted(state: SwarmState, peers: readonly PeerId[]): SwarmState {
  const next = peers.reduce(
    (before, id) => withPeer(before, id, (peer) => ({ ...peer, doubts: peer.doubts + 1 })),
    state,
  )
  return peers.length === 0 ? state : { ...next, links: next.links + 1 }
}

/** Whoever had a part in a good answer is above doubt; of the others less is held against them. */
function cleared(state: SwarmState, stages: readonly RouteEntry[]): SwarmState {
  const doubtful = [...state.peers.values()].filter(({ doubts }) => doubts > 0)
  return doubtful.reduce((next, { peer: id, doubts }) => {
    const isPart = stages.some(({ peer }) => peer === id)
    const left = isPart ? 0 : Math.max(0, doubts - DOUBT_FADES)
    return withPeer(next, id, (peer) => ({ ...peer, doubts: left }))
  }, state)
}

/** An answer that its stages computed to the end. */
export function answered(state: SwarmState, stages: readonly RouteEntry[]): SwarmState {
  return stages.reduce(
    (next, stage) =>
      withPeer(next, stage.peer, (peer) => {
        if (peer.strikes === 0) return peer
        const goodAnswers = peer.goodAnswers + 1
        return goodAnswers < FORGIVEN_AFTER
          ? { ...peer, goodAnswers }
          : { ...peer, strikes: 0, goodAnswers: 0 }
      }),
    cleared(state, stages),
  )
}
