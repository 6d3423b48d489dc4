import type { PeerId } from '../../sdk/core/ids.ts'
import type { ClientMessage } from '../../sdk/protocol/client-to-server.ts'
import type { ServerMessage, ServerMessageOf } from '../../sdk/protocol/server-to-client.ts'
import type { PeerHandle } from '../../signaling/peer-connection.ts'
import type { SwarmService } from '../../signaling/swarm-service.ts'
import { obey, pledgeOf } from './fake-swarm.ts'

export type ScriptedSession = {
  readonly prompt: readonly number[]
  readonly order: ServerMessageOf<'session-open'>
  /** Tokens from the last stage; an end token or the limit ends the answer. */
  tokens(ids: readonly number[]): void
  /** The last stage could not compute; it is asked again, as there is no other. */
  fail(message: string): void
}

/** Workers in a host's own process that hold every block, with a test's hands on what they compute. */
export type ScriptedRing = {
  /** Sessions whose prompt came, in order. */
  readonly sessions: ScriptedSession[]
  /** How many sessions each worker still keeps caches for. */
  open(): number[]
  /** Called with each session as its prompt comes; by default nothing is computed. */
  onPrompt: (session: ScriptedSession) => void
  leave(): void
}

export function joinScriptedRing(service: SwarmService, names: readonly string[]): ScriptedRing {
  const workers = names.map((name) => ({
    name,
    handle: null as PeerHandle | null,
    open: new Map<number, ServerMessageOf<'session-open'>>(),
  }))
  const ring: ScriptedRing = {
    sessions: [],
    open: () => workers.map(({ open }) => open.size),
    onPrompt: () => undefined,
    leave: () => workers.forEach(({ handle }) => handle?.receive({ kind: 'leave' })),
  }

  function sessionOf(start: ServerMessageOf<'session-start'>): ScriptedSession {
    const last = workers.find(({ open }) => {
      const order = open.get(start.session)
      return order !== undefined && order.stage === order.stages.length - 1
    })
    const order = last?.open.get(start.session)
    if (last === undefined || order === undefined) throw new Error('no last stage')
    const head = { session: order.session, epoch: order.epoch }
    const say = (message: ClientMessage): void => last.handle?.receive(message)
    let position = start.prompt.length
    return {
      prompt: start.prompt,
      order,
      tokens(ids) {
        for (const token of ids) {
          const top = Array.from({ length: order.sampling.topLogprobs }, (_, index) => ({
            token: token + index,
            logprob: -1 - index,
          }))
          say({ kind: 'session-token', ...head, position, sampled: { token, logprob: -1, top } })
          position += 1
          const isEnd = order.stopIds.includes(token)
          const isFull = position - start.prompt.length >= order.maxTokens
          if (!isEnd && !isFull) continue
          say({ kind: 'session-end', ...head, reason: isEnd ? 'stop' : 'length' })
          return
        }
      },
      fail: (message) =>
        say({ kind: 'session-failed', ...head, error: { code: 'stage-failed', message } }),
    }
  }

  function react(worker: (typeof workers)[number], message: ServerMessage): void {
    const { handle } = worker
    if (handle === null) return
    if (message.kind === 'session-open') worker.open.set(message.session, message)
    if (message.kind === 'session-close') worker.open.delete(message.session)
    obey({ say: (said) => handle.receive(said) }, message)
    // Only the first stage's has the prompt.
    if (message.kind !== 'session-start' || message.prompt.length === 0) return
    const session = sessionOf(message)
    ring.sessions.push(session)
    ring.onPrompt(session)
  }

  for (const worker of workers) {
    worker.handle = service.join(
      // A name that a test chooses is an id without a parser.
      { peer: worker.name as PeerId, name: worker.name, role: 'worker' },
      {
        // As over a socket: the reaction comes later than the message.
        send: (message) => queueMicrotask(() => react(worker, message)),
        sendRelay: () => undefined,
        close: () => undefined,
      },
    )
    worker.handle.receive(pledgeOf(1e9))
  }
  return ring
}
