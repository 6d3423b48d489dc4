import type { PeerId } from '../ids.ts'
import type { PeerState, SwarmState } from './state.ts'

export function withPeer(
  state: SwarmState,
  peer: PeerId,
  change: (peer: PeerState) => PeerState,
): SwarmState {
  const present = state.peers.get(peer)
  if (!present) return state
  const next = change(present)
  if (next === present) return state
  return { ...state, peers: new Map(state.peers).set(peer, next) }
}

/** Planner and router must look again. */
export function replanned(state: SwarmState): SwarmState {
  return { ...state, topology: state.topology + 1, links: state.links + 1 }
}
