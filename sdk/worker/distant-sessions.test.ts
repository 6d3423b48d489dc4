import { expect, test } from 'vitest'
import {
  activationBytes,
  FIRST,
  LAST,
  PAIR,
  SESSION_MODEL,
  sessionOrder,
  sessionStart,
} from '../../test/support/session-fixtures.ts'
import { CrowdError } from '../core/errors.ts'
import { SESSIONS_PER_STAGE } from '../core/limits.ts'
import type { PeerId, SessionId } from '../core/ids.ts'
import type { MessageEnd } from '../core/message-end.ts'
import { decodeFrame } from '../core/wire/frame.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import { createDistantSessions } from './distant-sessions.ts'
import { createSessionHost } from './session-host.ts'
import type { SessionCommand, SessionNews } from './session-messages.ts'

const { hiddenSize } = SESSION_MODEL
const frame = (position = 0) =>
  activationBytes({ position, data: new Float32Array(hiddenSize).fill(1) })

/** Two ends whose messages are cloned and arrive later, as between threads. */
function endsOf<A, B>(): [MessageEnd<A, B>, MessageEnd<B, A>] {
  let toFirst: (message: B) => void = () => undefined
  let toSecond: (message: A) => void = () => undefined
  return [
    {
      post: (message, transfer) =>
        queueMicrotask(sendCopy(message, transfer, (copy) => toSecond(copy))),
      listen: (listener) => (toFirst = listener),
    },
    {
      post: (message, transfer) =>
        queueMicrotask(sendCopy(message, transfer, (copy) => toFirst(copy))),
      listen: (listener) => (toSecond = listener),
    },
  ]
}

function sendCopy<T>(message: T, transfer: readonly object[] = [], to: (copy: T) => void) {
  // Only buffers are transferred here.
  const copy = structuredClone(message, { transfer: [...transfer] as ArrayBuffer[] })
  return () => to(copy)
}

type Options = {
  readonly lane?: number | null
  readonly noLink?: boolean
  readonly broken?: boolean
}

function setUp({ lane = null, noLink = false, broken = false }: Options = {}) {
  const told: ClientMessage[] = []
  const steps: [number, number][] = []
  const released: SessionId[] = []
  const bad: [PeerId, string][] = []
  const onLanes: [number, Uint8Array][] = []
  const passed: Uint8Array[] = []

  function thread(end: MessageEnd<SessionNews, SessionCommand>) {
    return createSessionHost({
      end,
      runner: {
        run: ({ input }) => {
          const data =
            input.kind === 'hidden'
              ? input.data.map((value) => value + 1)
              : new Float32Array(hiddenSize)
          return Promise.resolve({ kind: 'hidden', data, computeMs: 3 })
        },
        release: (session) => {
          released.push(session)
          return Promise.resolve()
        },
      },
      sendOnLane: (number, bytes) => {
        onLanes.push([number, bytes])
        return Promise.resolve()
      },
      now: () => 0,
      later: () => () => undefined,
    })
  }

  const sessions = createDistantSessions({
    runner: { run: () => Promise.reject(new Error('not here')), release: () => Promise.resolve() },
    link: () =>
      noLink
        ? Promise.reject(new CrowdError('timeout', 'no link'))
        : Promise.resolve({
            lane,
            send: (bytes: Uint8Array) => {
              if (broken) return Promise.reject(new CrowdError('link-closed', 'transport'))
              passed.push(bytes)
              return Promise.resolve()
            },
          }),
    tell: (message) => told.push(message),
    onStep: (tokens, computeMs) => steps.push([tokens, computeMs]),
    onChange: () => undefined,
    onBadFrame: (peer, { code }) => bad.push([peer, code]),
    now: () => 0,
    later: () => () => undefined,
  })

  function begin() {
    const [page, inThread] = endsOf<SessionCommand, SessionNews>()
    sessions.attach(page)
    return thread(inThread)
  }
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { sessions, host: begin(), begin, told, steps, released, bad, onLanes, passed, settled }
}

test('SE1 a stage is ready once the page found the link to the next one', async () => {
  const { sessions, told, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  expect(told).toEqual([{ kind: 'session-ready', session: 7, epoch: 1, cached: 0, kept: 0 }])
  expect(sessions.count()).toBe(1)
})

test('a frame that comes on a lane goes on on a lane, and the page hears only of the step', async () => {
  const { sessions, host, told, steps, onLanes, passed, settled } = setUp({ lane: 4 })
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  host.onFrame(FIRST, frame())
  await settled()
  const [[lane, bytes] = [0, new Uint8Array()]] = onLanes
  expect(lane).toBe(4)
  const data = new Float32Array(hiddenSize).fill(2)
  expect(decodeFrame(bytes)).toMatchObject({ kind: 'activation', position: 0, data })
  expect(passed).toEqual([])
  expect(steps).toEqual([[1, 3]])
  expect(told.slice(1)).toEqual([{ kind: 'session-step', session: 7, epoch: 1, computeMs: 3 }])
})

test('where frames pass the page they come to the thread and back', async () => {
  const { sessions, passed, onLanes, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  sessions.onFrame(FIRST, frame())
  await settled()
  expect(onLanes).toEqual([])
  expect(passed.map((bytes) => decodeFrame(bytes))).toMatchObject([{ position: 0 }])
})

test('SE4 a frame of a stranger is refused, wherever it came', async () => {
  const { sessions, host, bad, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  expect(() => host.onFrame(LAST, frame())).toThrow('not the stage before')
  sessions.onFrame(LAST, frame())
  await settled()
  expect(bad).toEqual([[LAST, 'bad-frame']])
})

test.each<[string, Options, string]>([
  ['no link to the next stage', { noLink: true }, 'timeout'],
  ['a link that breaks while sending', { broken: true }, 'stage-lost'],
])('SE6 %s fails the session once', async (_name, options, code) => {
  const { sessions, told, settled } = setUp(options)
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  if (options.broken === true) sessions.onFrame(FIRST, frame())
  await settled()
  sessions.onLost(PAIR, 'transport')
  sessions.failAll(new CrowdError('stage-lost', 'other layers'))
  await settled()
  expect(told.filter(({ kind }) => kind === 'session-failed')).toMatchObject([{ error: { code } }])
})

test('SE6 SE7 a thread that is gone fails what ran in it, once, and the next one serves anew', async () => {
  const { sessions, begin, told, released, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await sessions.open(sessionOrder({ session: 8 as SessionId }), SESSION_MODEL)
  await settled()
  await sessions.close({ kind: 'session-close', session: 8 as SessionId, epoch: 1, retain: false })
  await settled()
  expect(released).toEqual([8])
  sessions.lost(new CrowdError('stage-failed', 'the compute thread died'))
  expect(told.slice(2)).toMatchObject([
    { kind: 'session-failed', session: 7, error: { code: 'stage-failed' } },
  ])
  expect(sessions.count()).toBe(0)
  await sessions.dropAll()
  await sessions.open(sessionOrder({ session: 9 as SessionId }), SESSION_MODEL)
  expect(told.at(-1)).toMatchObject({ session: 9, error: { code: 'stage-failed' } })
  expect(sessions.count()).toBe(0)
  begin()
  await sessions.open(sessionOrder({ epoch: 2 }), SESSION_MODEL)
  await settled()
  expect(told.at(-1)).toMatchObject({ kind: 'session-ready', session: 7, epoch: 2 })
})

test('what ended or failed in the thread is not failed again when the thread is gone', async () => {
  const { sessions, told, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  sessions.onLost(PAIR, 'transport')
  await settled()
  sessions.lost(new CrowdError('stage-failed', 'the compute thread died'))
  expect(told.filter(({ kind }) => kind === 'session-failed')).toHaveLength(1)
})

test('after a reconnect everything is forgotten and its caches are freed', async () => {
  const { sessions, released, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await settled()
  await Promise.all([sessions.dropAll(), sessions.dropAll()])
  expect(released).toEqual([7])
  expect(sessions.count()).toBe(0)
})

test('forgetting everything ends when the thread dies instead of answering', async () => {
  const { sessions } = setUp()
  sessions.attach({ post: () => undefined, listen: () => undefined })
  const dropping = sessions.dropAll()
  sessions.lost(new CrowdError('stage-failed', 'the compute thread died'))
  await expect(dropping).resolves.toBeUndefined()
})

test('RE8 sessions of a host that was lost give way to those of the next one, in the thread too', async () => {
  const { sessions, released, settled } = setUp()
  for (let session = 1; session <= SESSIONS_PER_STAGE + 1; session += 1) {
    await sessions.open(sessionOrder({ session: session as SessionId }), SESSION_MODEL)
    await settled()
    sessions.park()
  }
  expect(released).toEqual([1])
  expect(sessions.count()).toBe(0)
})
