import type { SwarmConnection } from '../../sdk/index.browser.ts'
import type { SignalingState } from '../../sdk/net/signaling.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

/** The connection to the host and the swarm's state, as values that components can read. */
export interface SwarmView {
  readonly state: SignalingState
  /** null before the first one came. */
  readonly swarm: SwarmSnapshot | null
  close(): void
}

export function createSwarmView(
  connection: Pick<SwarmConnection, 'onState' | 'onSwarm'>,
): SwarmView {
  let state = $state.raw<SignalingState>({ kind: 'connecting' })
  let swarm = $state.raw<SwarmSnapshot | null>(null)
  const stops = [
    connection.onState((next) => (state = next)),
    connection.onSwarm((next) => (swarm = next)),
  ]
  return {
    get state() {
      return state
    },
    get swarm() {
      return swarm
    },
    close() {
      for (const stop of stops.splice(0)) stop()
    },
  }
}
