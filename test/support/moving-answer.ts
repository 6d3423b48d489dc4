import type { ClientMessageOf } from '../../sdk/protocol/client-to-server.ts'
import { at, fakeSwarm, pledgeOf, type FakePeer, type FakeSwarm } from './fake-swarm.ts'
import { modelOf } from './host-fixtures.ts'

/** Its answers are long enough to be moved. */
export const LONG_MODEL = modelOf({ contextLength: 200 })
export const MEMORY = 1e9
export const sampled = (token: number) => ({ token, logprob: -0.5, top: [] })

export type Ring = {
  readonly swarm: FakeSwarm
  readonly workers: FakePeer[]
  readonly asker: FakePeer
  /** The stages of the answer when it began. */
  readonly chain: readonly FakePeer[]
}

/** A chain of three devices, `copies` of each, and an answer that has two tokens. */
export function answering(copies: number, over: Partial<ClientMessageOf<'ask'>> = {}): Ring {
  const swarm = fakeSwarm(LONG_MODEL, 3)
  const workers = Array.from({ length: 3 * copies }, (_, index) => swarm.worker(`w${index}`))
  const asker = swarm.join('asker', 'asker')
  swarm.ask(asker, 'r1', { maxTokens: 90, ...over })
  const ring = { swarm, workers, asker, chain: [] }
  const chain = stagesOf(ring).map((peer) => byPeer(ring, peer))
  token(ring, 11)
  token(ring, 12)
  return { ...ring, chain }
}

export const requestOf = ({ swarm }: Pick<Ring, 'swarm'>, index = 0) =>
  at([...swarm.service.state().requests.values()], index)

export const stagesOf = (ring: Pick<Ring, 'swarm'>, index = 0): string[] =>
  requestOf(ring, index).stages.map(({ peer }) => peer)

export function byPeer({ workers }: Pick<Ring, 'workers'>, peer: string | undefined): FakePeer {
  const found = workers.find((worker) => worker.peer === peer)
  if (!found) throw new Error(`no ${peer}`)
  return found
}

/** The last stage of the present route says the next token. */
export function token(ring: Pick<Ring, 'swarm' | 'workers'>, id: number): void {
  const { session, epoch, promptLength, answer, stages } = requestOf(ring)
  if (session === null) throw new Error('no session')
  const position = promptLength + (answer?.length ?? 0)
  byPeer(ring, stages.at(-1)?.peer).say({
    kind: 'session-token',
    session,
    epoch,
    position,
    sampled: sampled(id),
  })
  ring.swarm.pass(100)
}

/** Everybody else who holds the same blocks. */
export function replicasOf(ring: Ring, worker: FakePeer): FakePeer[] {
  const { peers } = ring.swarm.service.state()
  const range = peers.get(worker.peer)?.assignment?.range
  return ring.workers.filter(
    (one) =>
      one !== worker &&
      peers.get(one.peer)?.assignment?.range?.start === range?.start &&
      range !== undefined,
  )
}

/** One device of the chain has a replica, and no other one. */
export function withReplica(ignored: Parameters<FakeSwarm['worker']>[2] = []) {
  const ring = answering(1)
  const replica = ring.swarm.worker('replica', MEMORY, ignored)
  ring.workers.push(replica)
  const [copied] = replicasOf(ring, replica)
  const other = ring.chain.find((worker) => worker !== copied)
  if (!copied || !other) throw new Error('it copies nobody')
  return { ring, replica, copied, other }
}

/** A second answer goes through the replica. */
export function useReplica({
  ring,
  replica,
  copied,
}: Omit<ReturnType<typeof withReplica>, 'other'>) {
  copied.say(pledgeOf(MEMORY, true))
  ring.swarm.ask(ring.asker, 'r2', { maxTokens: 90 })
  copied.say(pledgeOf(MEMORY))
  if (!stagesOf(ring, 1).includes(replica.peer)) throw new Error('it went round the replica')
  const { session, epoch } = requestOf(ring, 1)
  if (session === null) throw new Error('no session')
  return { session, epoch }
}
