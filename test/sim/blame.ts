import type { PeerId } from '../../sdk/core/ids.ts'
import type { SimSwarm } from './sim-swarm.ts'

/** Whether the host held anything against a device since now: a strike, a doubt or a message that it refused. */
export function watchBlame(sim: SimSwarm, peer: PeerId): { isHeld(): boolean } {
  let isHeld = false
  const refusedBefore = sim.host.refused.length
  sim.onEvent((event) => {
    if (event.kind === 'struck') isHeld ||= event.peer === peer
    if (event.kind === 'session-broken') isHeld ||= event.doubted?.includes(peer) === true
  })
  return {
    isHeld: () =>
      isHeld ||
      sim.host.refused.slice(refusedBefore).some((line) => line.startsWith(`${peer}: bad-message`)),
  }
}
