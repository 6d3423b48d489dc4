import { GREEDY } from '../../sdk/core/sampling/params.ts'
import type { PairId, PeerId, RequestId, SessionId } from '../../sdk/core/ids.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { ClientMessage, ClientMessageOf } from '../../sdk/protocol/client-to-server.ts'
import { parseServerMessage } from '../../sdk/protocol/parse.ts'
import type { ServerMessage, ServerMessageOf } from '../../sdk/protocol/server-to-client.ts'
import type { PeerConnection, PeerHandle } from '../../signaling/peer-connection.ts'
import {
  createSwarmService,
  type SwarmService,
  type SwarmServiceDeps,
} from '../../signaling/swarm-service.ts'

export type FakePeer = PeerConnection & {
  readonly peer: PeerId
  readonly inbox: ServerMessage[]
  readonly relayed: { pair: PairId; bytes: Uint8Array }[]
  readonly handle: PeerHandle
  closedFor: string | null
  say(message: ClientMessage): void
  /** All messages of one kind so far. */
  all<Kind extends ServerMessage['kind']>(kind: Kind): ServerMessageOf<Kind>[]
  /** The newest message of one kind; throws when there is none. */
  last<Kind extends ServerMessage['kind']>(kind: Kind): ServerMessageOf<Kind>
}

export type FakeSwarm = {
  readonly service: SwarmService
  /** Lets time pass in small steps, ticking as the host does. */
  pass(ms: number): void
  join(name: string, role?: 'worker' | 'asker' | 'watcher'): FakePeer
  /** A worker of a build that shares pieces, which does nothing by itself. */
  sharer(name: string): FakePeer
  /** A worker that pledged and does whatever it is told at once, links included, but for the `ignored` kinds. */
  worker(name: string, memoryBytes?: number, ignored?: readonly ServerMessage['kind'][]): FakePeer
  /** Tells the service of a wish for another model, and of what became of it. */
  model(event: Parameters<SwarmService['model']>[0]): void
  ask(asker: FakePeer, request: string, over?: Partial<ClientMessageOf<'ask'>>): void
}

/** The service with peers that live in this process and a clock that only tests move. */
export function fakeSwarm(
  model: Manifest,
  minStages: number,
  over: Partial<SwarmServiceDeps> = {},
): FakeSwarm {
  let now = 1_000
  const service = createSwarmService({
    model,
    minStages,
    iceServers: [{ urls: 'stun:example.invalid' }],
    now: () => now,
    firstSession: 7,
    pairPrefix: 't',
    origins: () => [],
    ...over,
  })

  function join(
    name: string,
    role: 'worker' | 'asker' | 'watcher' = 'worker',
    react: (peer: FakePeer, message: ServerMessage) => void = () => undefined,
    sharesPieces = false,
  ): FakePeer {
    const inbox: ServerMessage[] = []
    const relayed: FakePeer['relayed'] = []
    let ready = false
    let handle: PeerHandle | null = null
    const peer: FakePeer = {
      peer: name as PeerId,
      inbox,
      relayed,
      closedFor: null,
      get handle() {
        if (!handle) throw new Error('not joined yet')
        return handle
      },
      send(message) {
        // What leaves the host must be what its own schema allows.
        const parsed = parseServerMessage(structuredClone(message))
        if (!parsed.ok) throw parsed.error
        inbox.push(parsed.message)
        // As over a socket: the reaction comes later than the message.
        if (ready) pending.push(() => react(peer, message))
        else early.push(message)
      },
      sendRelay(pair, bytes) {
        relayed.push({ pair, bytes })
      },
      close(reason) {
        peer.closedFor = reason
      },
      say: (message) => peer.handle.receive(message),
      all: (kind) => inbox.filter((message) => message.kind === kind) as never,
      last(kind) {
        const found = inbox.findLast((message) => message.kind === kind)
        if (!found) throw new Error(`${name} got no ${kind}`)
        return found as never
      },
    }
    const early: ServerMessage[] = []
    handle = service.join({ peer: peer.peer, name, role, sharesPieces }, peer)
    ready = true
    for (const message of early) pending.push(() => react(peer, message))
    settle()
    return peer
  }

  const pending: (() => void)[] = []
  function settle(): void {
    for (let job = pending.shift(); job; job = pending.shift()) job()
  }

  return {
    service,
    pass(ms) {
      for (let left = ms; left > 0; left -= 100) {
        now += Math.min(100, left)
        service.tick()
        settle()
      }
    },
    join: (name, role) => join(name, role),
    sharer: (name) => join(name, 'worker', undefined, true),
    worker(name, memoryBytes = 1e9, ignored = []) {
      const peer = join(name, 'worker', (self, message) => {
        if (!ignored.includes(message.kind)) obey(self, message, memoryBytes)
      })
      peer.say(pledgeOf(memoryBytes))
      settle()
      return peer
    },
    model(event) {
      service.model(event)
      settle()
    },
    ask(asker, request, over = {}) {
      asker.say({
        kind: 'ask',
        request: request as RequestId,
        model: model.id,
        prompt: [5, 6, 7],
        maxTokens: 4,
        stopIds: [],
        sampling: { ...GREEDY, logitBias: [] },
        ...over,
      })
      settle()
    },
  }
}

/** `revision`: of the model of `modelOf()`. */
export function pledgeOf(memoryBytes: number, hidden = false, revision = 'r1'): ClientMessage {
  return { kind: 'pledge', memoryBytes, provider: 'wasm', threads: 1, revision, cached: [], hidden }
}

/** Pledges for every model; ready at once for every order, every link and every session. */
export function obey(peer: Pick<FakePeer, 'say'>, message: ServerMessage, memoryBytes = 1e9): void {
  if (message.kind === 'model') peer.say(pledgeOf(memoryBytes, false, message.revision))
  if (message.kind === 'assign' && message.range !== null)
    peer.say({
      kind: 'stage-state',
      assignment: message.assignment,
      state: 'ready',
      doneBytes: 10,
      totalBytes: 10,
      fetchedBytes: 10,
    })
  if (message.kind === 'pair-open')
    peer.say({
      kind: 'link-state',
      pair: message.pair,
      attempt: message.attempt,
      state: 'open',
      path: 'direct',
      rttMs: 1,
    })
  if (message.kind === 'session-open')
    peer.say({
      kind: 'session-ready',
      session: message.session,
      epoch: message.epoch,
      cached: 0,
      kept: 0,
    })
}

/** The last stage of a running answer chooses the end token of `modelOf()`, and says the end. */
export function endAnswer(
  last: Pick<FakePeer, 'say'>,
  head: { readonly session: SessionId; readonly epoch: number },
  position = 3,
): void {
  const sampled = { token: 2, logprob: -0.5, top: [] }
  last.say({ kind: 'session-token', ...head, position, sampled })
  last.say({ kind: 'session-end', ...head, reason: 'stop' })
}

/** A complete ring of workers `w0`, `w1`, … and somebody who asks. */
export function fakeRing(
  model: Manifest,
  stages: number,
  over: Partial<SwarmServiceDeps> = {},
): { swarm: FakeSwarm; workers: FakePeer[]; asker: FakePeer } {
  const swarm = fakeSwarm(model, stages, over)
  const workers = Array.from({ length: stages }, (_, index) => swarm.worker(`w${index}`))
  return { swarm, workers, asker: swarm.join('asker', 'asker') }
}

export function at<T>(list: readonly T[], index: number): T {
  const item = list[index]
  if (item === undefined) throw new Error(`nothing at ${index}`)
  return item
}
