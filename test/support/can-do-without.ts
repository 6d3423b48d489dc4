import type { PeerId } from '../../sdk/core/ids.ts'
import type { SwarmState } from '../../sdk/core/swarm/state.ts'
import { bestRoute, isComplete } from '../../sdk/core/swarm/views.ts'

/** Whether the other devices of a complete swarm could answer without this one. */
export function canDoWithout(state: SwarmState, peer: PeerId): boolean {
  const peers = new Map(state.peers)
  peers.delete(peer)
  return isComplete(state) && bestRoute({ ...state, peers }, false) !== null
}
