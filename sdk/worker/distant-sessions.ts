import { CrowdError, toCrowdError } from '../core/errors.ts'
import { SESSIONS_PER_STAGE } from '../core/limits.ts'
import type { PairId, SessionId } from '../core/ids.ts'
import type { MessageEnd } from '../core/message-end.ts'
import type { ServerMessageOf } from '../protocol/server-to-client.ts'
import { createDeferred, type Deferred } from './deferred.ts'
import type { SessionCommand, SessionNews } from './session-messages.ts'
import type { FrameSink, MakeSessions, Sessions, SessionsProgress } from './sessions.ts'
import type { SessionOrder } from './stage-session.ts'

/** The sessions of a worker, run in its compute thread. */
export type DistantSessions = Sessions & {
  /** The thread is there, or there anew. */
  attach(end: MessageEnd<SessionCommand, SessionNews>): void
  /** The thread is gone, and every session in it: the host is told. */
  lost(error: CrowdError): void
}

type OpenSession = {
  readonly epoch: number
  over: boolean
  /** The connection to the host was lost since it was opened. */
  parked: boolean
  /** Its answer is over; what is cached waits for a next question. */
  retained: boolean
}

function parkedIn(
  open: ReadonlyMap<SessionId, OpenSession>,
): Pick<SessionOrder, 'session' | 'epoch'>[] {
  return [...open].flatMap(([session, { epoch, parked }]) => (parked ? [{ session, epoch }] : []))
}

const NO_PROGRESS: SessionsProgress = { computing: false, sessions: [] }

export function createDistantSessions(deps: Parameters<MakeSessions>[0]): DistantSessions {
  /** What runs in the thread, with those that ended there and were not closed yet. */
  const open = new Map<SessionId, OpenSession>()
  const links = new Map<PairId, FrameSink>()
  let end: MessageEnd<SessionCommand, SessionNews> | null = null
  let dropping: Deferred<undefined> | null = null
  let asked: Deferred<SessionsProgress> | null = null

  const post = (command: SessionCommand, transfer: readonly object[] = []): void =>
    end?.post(command, transfer)

  async function findLink(pair: PairId): Promise<void> {
    try {
      const link = await deps.link(pair)
      links.set(pair, link)
      post({ kind: 'link', pair, lane: link.lane })
    } catch (thrown) {
      post({ kind: 'no-link', pair, error: toCrowdError(thrown, 'link-closed').toWire() })
    }
  }

  async function sendThroughPage(news: SessionNews & { kind: 'frame' }): Promise<void> {
    const { pair, frame, bytes } = news
    try {
      const link = links.get(pair)
      if (link === undefined) throw new CrowdError('link-closed', 'no link to the next stage')
      await link.send(bytes)
      post({ kind: 'sent', frame, error: null })
    } catch (thrown) {
      post({ kind: 'sent', frame, error: toCrowdError(thrown, 'link-closed').toWire() })
    }
  }

  function tell(message: Extract<SessionNews, { kind: 'tell' }>['message']): void {
    if (message.kind === 'session-failed' || message.kind === 'session-end') {
      const session = open.get(message.session)
      if (session?.epoch === message.epoch) session.over = true
    }
    deps.tell(message)
  }

  function receive(news: SessionNews): void {
    switch (news.kind) {
      case 'tell':
        tell(news.message)
        return
      case 'step':
        deps.onStep(news.tokens, news.computeMs)
        return
      case 'want-link':
        void findLink(news.pair)
        return
      case 'frame':
        void sendThroughPage(news)
        return
      case 'bad-frame':
        deps.onBadFrame(news.peer, news.error)
        return
      case 'progress':
        asked?.resolve(news.progress)
        asked = null
        return
      case 'dropped':
        dropped()
    }
  }

  function dropped(): void {
    dropping?.resolve(undefined)
    dropping = null
  }

  const drop = (order: Pick<SessionOrder, 'session' | 'epoch'>): Promise<void> =>
    close({ kind: 'session-close', ...order, retain: false })

  /** Sessions of a host that was lost give way to new ones. */
  function makeRoom(): void {
    const [parked] = open.size < SESSIONS_PER_STAGE ? [] : parkedIn(open)
    if (parked !== undefined) void drop(parked)
  }

  function forget(order: Pick<SessionOrder, 'session' | 'epoch'>): void {
    if (open.get(order.session)?.epoch !== order.epoch) return
    open.delete(order.session)
    deps.onChange()
  }

  function close(message: ServerMessageOf<'session-close'>): Promise<void> {
    post({ kind: 'close', message })
    const session = open.get(message.session)
    if (!message.retain) forget(message)
    else if (session?.epoch === message.epoch) {
      session.over = true
      session.retained = true
      deps.onChange()
    }
    return Promise.resolve()
  }

  return {
    attach(next) {
      end = next
      next.listen(receive)
    },
    lost(error) {
      end = null
      dropped()
      asked?.resolve(NO_PROGRESS)
      asked = null
      links.clear()
      for (const [session, { epoch, over }] of open) {
        if (!over) deps.tell({ kind: 'session-failed', session, epoch, error: error.toWire() })
      }
      open.clear()
      deps.onChange()
    },
    open(order, { hiddenSize, contextLength, eosTokenIds }) {
      const { session, epoch } = order
      const former = open.get(session)
      if (end === null) {
        const error = new CrowdError('stage-failed', 'the compute thread is started anew')
        deps.tell({ kind: 'session-failed', session, epoch, error: error.toWire() })
        return Promise.resolve()
      }
      if (former === undefined) makeRoom()
      if (former === undefined || former.epoch < epoch)
        open.set(session, { epoch, over: false, parked: false, retained: false })
      post({ kind: 'open', order, model: { hiddenSize, contextLength, eosTokenIds } })
      deps.onChange()
      return Promise.resolve()
    },
    start: (message) => post({ kind: 'start', message }),
    close,
    onFrame(peer, bytes) {
      const whole = bytes.byteLength === bytes.buffer.byteLength
      post({ kind: 'frame', peer, bytes }, whole ? [bytes.buffer] : [])
    },
    onLost(pair, reason) {
      links.delete(pair)
      post({ kind: 'link-lost', pair, reason })
    },
    count: () => [...open.values()].filter(({ retained, parked }) => !retained && !parked).length,
    progress() {
      if (end === null) return Promise.resolve(NO_PROGRESS)
      asked ??= createDeferred<SessionsProgress>()
      post({ kind: 'want-progress' })
      return asked.promise
    },
    failAll: (error) => post({ kind: 'fail-all', error: error.toWire() }),
    park() {
      for (const [session, one] of open) {
        // The host forgets them with the connection.
        if (one.retained) void drop({ session, epoch: one.epoch })
        else one.parked = true
      }
    },
    async dropParked() {
      await Promise.all(parkedIn(open).map(drop))
    },
    async dropAll() {
      open.clear()
      links.clear()
      deps.onChange()
      if (end === null) return
      // A thread that does not answer is killed in the end, which ends the wait.
      dropping ??= createDeferred<undefined>()
      post({ kind: 'drop-all' })
      await dropping.promise
    },
  }
}
