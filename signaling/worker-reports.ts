import { fromWire } from '../sdk/core/errors.ts'
import type { PeerId } from '../sdk/core/ids.ts'
import type { Observation } from '../sdk/core/swarm/events.ts'
import type { ClientMessageOf } from '../sdk/protocol/client-to-server.ts'

/** Codes of newer builds become `internal`. */
function checkedError(error: { code: string; message: string } | undefined) {
  return error === undefined ? undefined : fromWire(error).toWire()
}

/** What a worker says about itself and its links, beside its sessions. */
type WorkerReport =
  | ClientMessageOf<'pledge'>
  | ClientMessageOf<'stage-state'>
  | ClientMessageOf<'stage-stats'>
  | ClientMessageOf<'link-state'>
  | ClientMessageOf<'beat'>

export function workerEvent(peer: PeerId, message: WorkerReport): Observation {
  switch (message.kind) {
    case 'pledge': {
      const { memoryBytes, provider, threads, hidden, revision } = message
      const cached = new Set(message.cached)
      const pledge = { memoryBytes, provider, threads, cached, hidden }
      return { kind: 'pledged', peer, pledge, revision }
    }
    case 'stage-state':
      return {
        kind: 'stage-reported',
        peer,
        assignment: message.assignment,
        state: message.state,
        doneBytes: message.doneBytes,
        totalBytes: message.totalBytes,
        fetchedBytes: message.fetchedBytes,
        peerBytes: message.peerBytes,
        error: checkedError(message.error) ?? null,
      }
    case 'stage-stats':
      return { ...message, kind: 'stats-reported', peer }
    case 'link-state':
      return { ...message, kind: 'link-reported', peer, error: checkedError(message.error) }
    case 'beat':
      return { ...message, peer }
  }
}
