import type { SignalingState } from '../../sdk/net/signaling.ts'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'

export type TokenizerState = 'loading' | 'ready' | 'failed'

/** Why a question can't be sent right now, for people; empty when it can. */
export function whyBlocked(
  state: SignalingState,
  swarm: SwarmSnapshot | null,
  tokenizer: TokenizerState,
): string {
  switch (state.kind) {
    case 'connecting':
      return 'Connecting to the host…'
    case 'lost':
      return 'The host cannot be reached. Trying again…'
    case 'refused':
      return 'The host does not let this page in.'
    case 'closed':
      return 'The connection to the host is closed.'
    case 'open':
      break
  }
  if (tokenizer === 'failed') return 'The tokenizer could not be loaded.'
  if (tokenizer === 'loading') return 'Loading the tokenizer…'
  if (swarm === null) return 'Waiting for the state of the ring…'
  if (swarm.change?.phase === 'draining') return `The host is changing to ${swarm.change.name}…`
  if (!swarm.complete) return swarm.advice || 'The ring is not complete yet.'
  return ''
}

/** `3 devices hold all 6 layers of crowdtalk-2.6m.` */
export function describeRing(swarm: SwarmSnapshot): string {
  const holders = swarm.peers.filter((peer) => peer.state === 'ready' && peer.range !== null).length
  const { id, layerCount } = swarm.model
  return `${holders} device${holders === 1 ? '' : 's'} hold${holders === 1 ? 's' : ''} all ${layerCount} layers of ${id}.`
}
