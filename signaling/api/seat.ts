import type { PeerId, RequestId } from '../../sdk/core/ids.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { requestKey } from '../../sdk/core/swarm/apply-requests.ts'
import type { RequestState } from '../../sdk/core/swarm/request-state.ts'
import { createClient, type Client, type Tokenizer } from '../../sdk/index.node.ts'
import { createInProcessSignaling } from '../in-process-signaling.ts'
import type { SwarmService } from '../swarm-service.ts'

export type SeatDeps = {
  readonly service: Pick<SwarmService, 'join' | 'state'>
  readonly manifest: Pick<Manifest, 'id' | 'revision' | 'contextLength'>
  /** Hex digits that nobody else has. */
  randomId(): string
  /** Runs `task` after `ms` unless the returned function was called. */
  later(ms: number, task: () => void): () => void
}

/**
 * A place in the swarm for one HTTP request, as an asker. Giving it back ends whatever it still asks, so a
 * request that is gone can't leave an answer running.
 */
export type Seat = {
  readonly client: Client
  /** The swarm's record of the first answer that was asked for; undefined before, and a while after. */
  first(): RequestState | undefined
  /** Idempotent. */
  close(): void
}

/** @throws CrowdError pool-full, signaling-closed */
export function takeSeat(deps: SeatDeps, tokenizer: Tokenizer, name: string): Seat {
  // Random hex digits are an id without a parser.
  const peer = `api-${deps.randomId()}` as PeerId
  const signaling = createInProcessSignaling(deps.service, { peer, name, role: 'asker' })
  let asked = 0
  const client = createClient({
    signaling,
    tokenizer,
    model: deps.manifest.id,
    revision: deps.manifest.revision,
    contextLength: deps.manifest.contextLength,
    newRequestId: () => requestId((asked += 1)),
    later: (ms, task) => deps.later(ms, task),
    // The host is this process.
    resumeMs: 0,
  })
  signaling.connect()
  return {
    client,
    first: () => deps.service.state().requests.get(requestKey(peer, requestId(1))),
    close() {
      client.close()
      signaling.close()
    },
  }
}

function requestId(number: number): RequestId {
  return `c${number}` as RequestId
}
