import type { Break, Move, RequestState, Retained } from './request-state.ts'
import type { ModelChange, PairState, PeerState, SwarmState } from './state.ts'

/** Fields that hold a moment of the host's clock: by their names, so that a new one can't be forgotten here. */
type MomentOf<T> = Extract<keyof T, `${string}At` | `${string}Since` | 'at' | 'since'>
type Moments<T> = Readonly<Record<MomentOf<T>, true>>

const PEER: Moments<PeerState> = {
  droppedAt: true,
  heardAt: true,
  pledgeDueSince: true,
  hiddenSince: true,
  computedAt: true,
  struckAt: true,
}
const PAIR: Moments<PairState> = { since: true }
const REQUEST: Moments<RequestState> = { startedAt: true, progressAt: true }
const BREAK: Moments<Break> = { since: true }
const MOVE: Moments<Move> = { at: true }
const RETAINED: Moments<Retained> = { since: true }
const CHANGE: Moments<ModelChange> = { since: true }
const SWARM: Moments<SwarmState> = { sourcesSoughtAt: true }

/** The host stood still for `ms`: everything that is timed goes on from where it was, as if that time had not been. */
export function hostSlept(state: SwarmState, ms: number): SwarmState {
  const later = <T extends object>(moments: Moments<T>, one: T): T => laterBy(ms, moments, one)
  const eachLater = <K, T extends object>(moments: Moments<T>, all: ReadonlyMap<K, T>): Map<K, T> =>
    new Map([...all].map(([key, one]) => [key, later(moments, one)]))
  const requests = [...state.requests].map(([key, request]) => {
    const { broken, moved } = request
    const next: RequestState = {
      ...later(REQUEST, request),
      broken: broken && later(BREAK, broken),
      moved: moved && later(MOVE, moved),
    }
    return [key, next] as const
  })
  return {
    ...later(SWARM, state),
    peers: eachLater(PEER, state.peers),
    pairs: eachLater(PAIR, state.pairs),
    requests: new Map(requests),
    retained: eachLater(RETAINED, state.retained),
    change: state.change && later(CHANGE, state.change),
  }
}

function laterBy<T extends object>(ms: number, moments: Moments<T>, one: T): T {
  const moved: Record<string, number> = {}
  for (const name of Object.keys(moments)) {
    // The names are T's own, by the type of `moments`.
    const at = one[name as keyof T]
    if (typeof at === 'number') moved[name] = at + ms
  }
  return { ...one, ...moved }
}
