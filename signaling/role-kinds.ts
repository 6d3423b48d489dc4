import type { PeerRole } from '../sdk/core/swarm/state.ts'
import type { ClientMessage } from '../sdk/protocol/client-to-server.ts'

const WORKER_KINDS: ReadonlySet<ClientMessage['kind']> = new Set([
  'pledge',
  'stage-state',
  'stage-stats',
  'signal',
  'link-state',
  'session-ready',
  'session-token',
  'session-end',
  'session-timings',
  'session-step',
  'session-failed',
  'beat',
  'leave',
])
const ASKER_KINDS: ReadonlySet<ClientMessage['kind']> = new Set(['ask', 'cancel', 'leave'])

/** Whether a client of this role may say that after its hello (SG17). */
export function allowed(role: PeerRole, kind: ClientMessage['kind']): boolean {
  if (role === 'worker') return WORKER_KINDS.has(kind)
  return role === 'asker' ? ASKER_KINDS.has(kind) : kind === 'leave'
}
