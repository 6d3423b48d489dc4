import { expect, test } from 'vitest'
import {
  activationBytes,
  FIRST,
  LAST,
  MIDDLE,
  SESSION_MODEL,
  sessionOrder,
  sessionStart,
} from '../../test/support/session-fixtures.ts'
import { CrowdError } from '../core/errors.ts'
import { SESSIONS_PER_STAGE } from '../core/limits.ts'
import type { PairId, PeerId, SessionId } from '../core/ids.ts'
import type { ClientMessage } from '../protocol/client-to-server.ts'
import type { StageStep } from '../runtime/stage-runner.ts'
import { createSessions, type FrameSink } from './sessions.ts'

const { hiddenSize, contextLength } = SESSION_MODEL

function setUp() {
  const told: ClientMessage[] = []
  const steps: StageStep[] = []
  const released: SessionId[] = []
  const sent: Uint8Array[] = []
  const link = { open: true, broken: false, gate: Promise.resolve() }
  const runner = { gate: Promise.resolve() }
  const sink: FrameSink = {
    lane: null,
    send: (bytes: Uint8Array) => {
      if (link.broken) return Promise.reject(new CrowdError('timeout', 'link: moved no data'))
      sent.push(bytes)
      return Promise.resolve()
    },
  }
  const sessions = createSessions({
    runner: {
      run: async (step) => {
        steps.push(step)
        await runner.gate
        return { kind: 'hidden', data: new Float32Array(hiddenSize), computeMs: 1 }
      },
      release: (session) => {
        released.push(session)
        return Promise.resolve()
      },
    },
    link: () =>
      link.open ? link.gate.then(() => sink) : Promise.reject(new CrowdError('timeout', 'no link')),
    tell: (message) => told.push(message),
    onStep: () => undefined,
    onChange: () => undefined,
    now: () => 0,
    later: () => () => undefined,
  })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const breakSending = (): void => void (link.broken = true)
  return { sessions, told, steps, released, sent, link, runner, settled, breakSending }
}

test('SE1 a stage is ready once its link to the next one is open', async () => {
  const { sessions, told } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  expect(told).toEqual([{ kind: 'session-ready', session: 7, epoch: 1, cached: 0, kept: 0 }])
})

test('a stage without a link to the next one says so', async () => {
  const { sessions, told, link } = setUp()
  link.open = false
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  expect(told).toMatchObject([{ kind: 'session-failed', error: { code: 'timeout' } }])
})

test('SE2 frames of an unknown session, an old epoch or a closed session are dropped without a fault', async () => {
  const { sessions, steps, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  sessions.onFrame(FIRST, activationBytes({ session: 8 as SessionId }))
  sessions.onFrame(FIRST, activationBytes({ epoch: 0 }))
  await sessions.close({ kind: 'session-close', session: 7 as SessionId, epoch: 1, retain: false })
  sessions.onFrame(FIRST, activationBytes())
  await settled()
  expect(steps).toEqual([])
})

test('SE4 a frame that does not come from the stage before is a bad frame', async () => {
  const { sessions, steps, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  for (const peer of [MIDDLE, LAST, 'stranger' as PeerId])
    expect(() => sessions.onFrame(peer, activationBytes())).toThrow('not the stage before')
  sessions.onFrame(FIRST, activationBytes())
  await settled()
  expect(steps).toHaveLength(1)
})

test('SE5 rows are computed where they say, one behind the other', async () => {
  const { sessions, steps, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  for (const position of [0, 1, 2]) sessions.onFrame(FIRST, activationBytes({ position }))
  await settled()
  expect(steps.map((step) => step.position)).toEqual([0, 1, 2])
})

test('SE5 SE4 rows behind a hole are a bad frame of the stage before, and not computed', async () => {
  const { sessions, told, steps, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  sessions.onFrame(FIRST, activationBytes({ position: 0 }))
  await settled()
  sessions.onFrame(FIRST, activationBytes({ position: 2 }))
  await settled()
  expect(steps.map((step) => step.position)).toEqual([0])
  expect(told.at(-1)).toMatchObject({
    kind: 'session-failed',
    error: { code: 'bad-frame', message: 'bad frame: rows from position 2 on, where 1 was next' },
  })
})

test('a frame of another hidden size, or cut short, is a bad frame', async () => {
  const { sessions } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  expect(() => sessions.onFrame(FIRST, activationBytes({ hiddenSize: 8 }))).toThrow('hidden size 8')
  expect(() => sessions.onFrame(FIRST, activationBytes().slice(0, 50))).toThrow('bad frame')
})

test('SE7 closing frees the caches, and an old epoch’s close leaves the new one alone', async () => {
  const { sessions, released } = setUp()
  await sessions.open(sessionOrder({ epoch: 2 }), SESSION_MODEL)
  await sessions.close({ kind: 'session-close', session: 7 as SessionId, epoch: 1, retain: false })
  expect(sessions.count()).toBe(1)
  await sessions.close({ kind: 'session-close', session: 7 as SessionId, epoch: 2, retain: false })
  expect(released).toEqual([7])
  expect(sessions.count()).toBe(0)
})

test('a raised epoch replaces the route; a lower one is not taken back', async () => {
  const { sessions, told } = setUp()
  await sessions.open(sessionOrder({ epoch: 1 }), SESSION_MODEL)
  await sessions.open(sessionOrder({ epoch: 2 }), SESSION_MODEL)
  await sessions.open(sessionOrder({ epoch: 1 }), SESSION_MODEL)
  expect(told.map((message) => (message.kind === 'session-ready' ? message.epoch : null))).toEqual([
    1, 2,
  ])
})

test('SE6 a session that failed is told once, and a link that moves no data is no fault of its own', async () => {
  const { sessions, told, sent, breakSending, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  breakSending()
  sessions.onFrame(FIRST, activationBytes())
  await settled()
  sessions.onLost('pair' as PairId, 'transport')
  sessions.failAll(new CrowdError('stage-lost', 'other layers'))
  expect(sent).toEqual([])
  expect(told.slice(1)).toMatchObject([
    { kind: 'session-step' },
    {
      kind: 'session-failed',
      error: { code: 'stage-lost', message: 'the next stage got no frame: link: moved no data' },
    },
  ])
})

test('a lost link fails the sessions that send on it, and only those', async () => {
  const { sessions, told } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  sessions.onLost('another' as PairId, 'silence')
  sessions.onLost('pair' as PairId, 'silence')
  expect(told.slice(1)).toMatchObject([{ kind: 'session-failed', error: { code: 'stage-lost' } }])
})

test('after a reconnect everything is forgotten and its caches are freed, even by a runner that is gone', async () => {
  const { sessions, released } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  await sessions.open(sessionOrder({ session: 8 as SessionId }), SESSION_MODEL)
  await sessions.dropAll()
  expect(released).toEqual([7, 8])
  expect(sessions.count()).toBe(0)
})

test('rows beyond a whole context do not pile up: they are a bad frame', async () => {
  const { sessions, told } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  const next = (position: number) => sessions.onFrame(FIRST, activationBytes({ position }))
  for (let row = 0; row < contextLength; row += 1) next(row)
  expect(told).toHaveLength(1)
  next(contextLength)
  expect(told.at(-1)).toMatchObject({ kind: 'session-failed', error: { code: 'bad-frame' } })
})

test('RE2 RE8 a raised epoch goes on with what is cached, cut to the rows that still hold', async () => {
  const { sessions, told, released, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  for (const position of [0, 1, 2]) sessions.onFrame(FIRST, activationBytes({ position }))
  await settled()
  await sessions.open(sessionOrder({ epoch: 2, valid: 9 }), SESSION_MODEL)
  expect(told.at(-1)).toMatchObject({ kind: 'session-ready', epoch: 2, cached: 3, kept: 3 })
  await sessions.open(sessionOrder({ epoch: 3, valid: 2 }), SESSION_MODEL)
  expect(told.at(-1)).toMatchObject({ epoch: 3, cached: 2, kept: 2 })
  expect(released).toEqual([])
  sessions.park()
  await sessions.open(sessionOrder({ session: 8 as SessionId }), SESSION_MODEL)
  await sessions.open(sessionOrder({ epoch: 4, valid: 2 }), SESSION_MODEL)
  await sessions.dropParked()
  expect(sessions.count()).toBe(2)
  sessions.park()
  await sessions.dropParked()
  expect(released).toEqual([7, 8])
})

/** A gate that is shut until it is opened. */
function gateOf(): { readonly gate: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined
  const gate = new Promise<void>((resolve) => (open = resolve))
  return { gate, open }
}

test('RE2 RE4 a link that comes up late changes nothing in the epoch that took another way', async () => {
  const { sessions, told, sent, link, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  sessions.onFrame(FIRST, activationBytes({ position: 0 }))
  await settled()
  const late = gateOf()
  link.gate = late.gate
  const waiting = sessions.open(sessionOrder({ epoch: 2, valid: 1 }), SESSION_MODEL)
  link.gate = Promise.resolve()
  await sessions.open(sessionOrder({ epoch: 3, answered: 1, valid: 1 }), SESSION_MODEL)
  sessions.start(sessionStart({ epoch: 3, from: 1, forward: 1 }))
  const next = (position: number) =>
    sessions.onFrame(FIRST, activationBytes({ epoch: 3, position }))
  for (const position of [1, 2]) next(position)
  await settled()
  late.open()
  await waiting
  next(3)
  await settled()
  expect(told.filter(({ kind }) => kind === 'session-failed')).toEqual([])
  expect(sent).toHaveLength(4)
  await sessions.open(sessionOrder({ epoch: 4, answered: 3, valid: 9 }), SESSION_MODEL)
  const ready = told.flatMap((message) => (message.kind === 'session-ready' ? [message] : []))
  expect(ready).toMatchObject([{ epoch: 1 }, { epoch: 3 }, { epoch: 4, cached: 4, kept: 4 }])
})

test('RE9 nor does it in a session that was closed meanwhile', async () => {
  const { sessions, told, link } = setUp()
  for (const retain of [true, false]) {
    const late = gateOf()
    link.gate = late.gate
    const waiting = sessions.open(sessionOrder({ epoch: retain ? 1 : 2 }), SESSION_MODEL)
    const close = { kind: 'session-close', session: 7 as SessionId, retain } as const
    await sessions.close({ ...close, epoch: retain ? 1 : 2 })
    late.open()
    await waiting
  }
  expect(told).toEqual([])
})

test('RE2 no epoch is ready while a step of one before the last still runs', async () => {
  const { sessions, told, runner, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  const step = gateOf()
  runner.gate = step.gate
  sessions.onFrame(FIRST, activationBytes({ position: 0 }))
  await settled()
  void sessions.open(sessionOrder({ epoch: 2, valid: 1 }), SESSION_MODEL)
  void sessions.open(sessionOrder({ epoch: 3, valid: 1 }), SESSION_MODEL)
  await settled()
  expect(told).toMatchObject([{ epoch: 1 }])
  step.open()
  await settled()
  expect(told.at(-1)).toMatchObject({ kind: 'session-ready', epoch: 3, cached: 1, kept: 1 })
})

test('RE2 other layers keep nothing of a session', async () => {
  const { sessions, told, released, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  sessions.onFrame(FIRST, activationBytes({ position: 0 }))
  await settled()
  sessions.failAll(new CrowdError('stage-lost', 'other layers'))
  expect(released).toEqual([7])
  await sessions.open(sessionOrder({ epoch: 2, valid: 9 }), SESSION_MODEL)
  expect(told.at(-1)).toMatchObject({ epoch: 2, cached: 0, kept: 0 })
})

test('RE2 nor does a step that ran while other layers came', async () => {
  const { sessions, steps, runner, told, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  let end: () => void = () => undefined
  runner.gate = new Promise((resolve) => (end = resolve))
  sessions.onFrame(FIRST, activationBytes({ position: 0 }))
  await settled()
  expect(steps).toHaveLength(1)
  sessions.failAll(new CrowdError('stage-lost', 'other layers'))
  end()
  await settled()
  await sessions.open(sessionOrder({ epoch: 2, valid: 9 }), SESSION_MODEL)
  expect(told.at(-1)).toMatchObject({ epoch: 2, cached: 0, kept: 0 })
})

test('HB7 where each session stands is told while a step runs', async () => {
  const { sessions, settled } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  sessions.start(sessionStart())
  expect(await sessions.progress()).toEqual({
    computing: false,
    sessions: [{ session: 7, epoch: 1, position: 0 }],
  })
  sessions.onFrame(FIRST, activationBytes({ position: 0 }))
  await settled()
  expect((await sessions.progress()).sessions).toMatchObject([{ position: 1 }])
})

test('RE8 sessions of a host that was lost give way to those of the next one', async () => {
  const { sessions, released, told } = setUp()
  const open = (session: number) =>
    sessions.open(sessionOrder({ session: session as SessionId }), SESSION_MODEL)
  for (let session = 1; session <= SESSIONS_PER_STAGE; session += 1) {
    await open(session)
    sessions.park()
  }
  await open(99)
  expect(released).toEqual([1])
  // The others wait, but are no answers of this host.
  expect(sessions.count()).toBe(1)
  expect(told.at(-1)).toMatchObject({ kind: 'session-ready', session: 99 })
})

test('RE9 what was retained goes with the connection to the host, which forgets it', async () => {
  const { sessions, released } = setUp()
  await sessions.open(sessionOrder(), SESSION_MODEL)
  await sessions.open(sessionOrder({ session: 8 as SessionId }), SESSION_MODEL)
  await sessions.close({ kind: 'session-close', session: 7 as SessionId, epoch: 1, retain: true })
  expect([sessions.count(), released]).toEqual([1, []])
  sessions.park()
  expect(released).toEqual([7])
})
