import { expect, test } from 'vitest'
import { createManualTimers, settle } from '../../test/support/manual-timers.ts'
import { CrowdError } from '../core/errors.ts'
import type { ModelId, PeerId } from '../core/ids.ts'
import type { SignalingState } from '../net/signaling.ts'
import type { JoinOptions } from '../node-worker.node.ts'
import { PROTOCOL } from '../protocol/version.ts'
import type { Worker, WorkerSnapshot } from '../worker/worker-snapshot.ts'
import type { WorkerConfig } from './config.ts'
import { textOf, type WorkerEvent } from './events.ts'
import { DRAIN_MS, startWorkerRun } from './run-worker.ts'

const config: WorkerConfig = {
  link: { origin: 'http://host:7080', secret: 's' },
  name: 'box',
  pledgeBytes: 1e9,
  ort: { prefer: 'cpu' },
  dataDir: '/data',
  once: false,
  json: false,
}

const OPEN: SignalingState = {
  kind: 'open',
  welcome: {
    kind: 'welcome',
    protocol: PROTOCOL,
    features: [],
    // Names that a test chooses are ids without a parser.
    peer: 'p' as PeerId,
    name: 'box',
    model: 'm' as ModelId,
    revision: 'r1',
    manifestPath: '/models/m/manifest.json',
  },
}
const LOST: SignalingState = { kind: 'lost', reason: 'transport close' }

const IDLE: WorkerSnapshot = {
  phase: 'idle',
  peer: null,
  model: null,
  layerCount: 4,
  range: null,
  reason: '',
  runner: null,
  pledgeBytes: 0,
  doneBytes: 0,
  totalBytes: 0,
  fetchedBytes: 0,
  peerBytes: 0,
  storage: null,
  links: [],
  laps: 0,
  tokens: 0,
  stepMs: null,
  sessions: 0,
  error: null,
}

function createFakeWorker() {
  const handlers = new Set<(snapshot: WorkerSnapshot) => void>()
  let snapshot = IDLE
  const calls: string[] = []
  const change = (next: Partial<WorkerSnapshot>): void => {
    snapshot = { ...snapshot, ...next }
    for (const handler of [...handlers]) handler(snapshot)
  }
  const note = (call: string, next: Partial<WorkerSnapshot> = {}): Promise<void> => {
    calls.push(call)
    change(next)
    return Promise.resolve()
  }
  const worker: Worker = {
    onChange(handler) {
      handlers.add(handler)
      handler(snapshot)
      return () => handlers.delete(handler)
    },
    snapshot: () => snapshot,
    start: () => note('start', { phase: 'testing' }),
    setPledge: () => undefined,
    pause: () => note('pause', { phase: 'paused' }),
    resume: () => note('resume'),
    setHidden: () => undefined,
    sleep: () => undefined,
    wake: () => undefined,
    leave: () => note('leave', { phase: 'left' }),
  }
  return { worker, change, calls }
}

function setUp(change: Partial<WorkerConfig> = {}, unreachable: CrowdError | null = null) {
  const timers = createManualTimers()
  const events: WorkerEvent[] = []
  const joins: (ReturnType<typeof createFakeWorker> & { options: JoinOptions })[] = []
  let exitCode: number | null = null
  const run = startWorkerRun({
    config: { ...config, ...change },
    device: {
      join(options) {
        const fake = { ...createFakeWorker(), options }
        joins.push(fake)
        return fake.worker
      },
    },
    emit: (event) => events.push(event),
    checkHost: () => Promise.resolve(unreachable),
    later: timers.after,
  })
  void run.done.then((code) => (exitCode = code))
  const latest = () => {
    const last = joins.at(-1)
    if (last === undefined) throw new Error('nothing joined')
    return last
  }
  const fail = (code: ConstructorParameters<typeof CrowdError>[0]): void =>
    latest().change({ phase: 'failed', error: new CrowdError(code, 'so it is') })
  const host = async (state: SignalingState): Promise<void> => {
    latest().options.onHost(state)
    await settle()
  }
  const kinds = () => events.map(({ event }) => event)
  const exit = async () => {
    await settle()
    return exitCode
  }
  return { run, timers, events, kinds, joins, latest, fail, host, exit }
}

test('says what a person wants to know, the provider first', async () => {
  const { latest, host, events } = setUp()
  latest().change({ runner: { provider: 'cpu', threads: 2, notes: ['cuda: no driver'] } })
  await host(OPEN)
  const range = { start: 0, end: 3 }
  latest().change({ phase: 'waiting' })
  latest().change({ phase: 'fetching', range })
  latest().change({ totalBytes: 2e6 })
  // A line for each percent, not for each chunk.
  for (const doneBytes of [1e6, 1e6 + 1, 2e6]) latest().change({ doneBytes })
  latest().change({ phase: 'serving', fetchedBytes: 1e6, peerBytes: 6e5 })
  const link = { peer: 'other' as PeerId, path: null, state: 'opening', rttMs: null } as const
  latest().change({ links: [link] })
  latest().change({ links: [{ ...link, path: 'direct', state: 'open' }] })
  latest().change({ links: [{ ...link, path: 'direct', state: 'open', rttMs: 1 }] })
  expect(events.map(textOf)).toEqual([
    'provider: cpu (2 threads), self-test passed\n  passed over cuda: no driver',
    'joined http://host:7080 as "box"; model m',
    'nothing to hold yet',
    'preparing embedding and layers 1–2',
    '1.00 MB of 2.00 MB',
    '2.00 MB of 2.00 MB',
    'serving embedding and layers 1–2: 2.00 MB, 1.00 MB of them fetched now, 600 kB from peers',
    'linked to other: direct',
  ])
})

test('a stage that could not be loaded is told with its code', () => {
  const { latest, events } = setUp()
  latest().change({ phase: 'waiting', error: new CrowdError('storage-full', '3 MB are missing') })
  expect(events.at(-1)).toMatchObject({ event: 'error', code: 'storage-full' })
})

test('a host that goes away is told once for each time, with the reason, and waited for', async () => {
  const reason = new CrowdError('host-unreachable', 'nothing listens there')
  const { host, events, exit, timers, joins } = setUp({}, reason)
  for (let round = 0; round < 3; round += 1) await host(LOST)
  await host(OPEN)
  await host(LOST)
  await timers.advance(3_600_000)
  expect(events.map(textOf)).toEqual([
    'nothing listens there; trying again',
    'joined http://host:7080 as "box"; model m',
    'nothing listens there; trying again',
  ])
  expect(await exit()).toBeNull()
  expect(joins).toHaveLength(1)
})

test('--once: leaves with the host, and fails where it never was', async () => {
  const present = setUp({ once: true })
  await present.host(OPEN)
  await present.host(LOST)
  expect(await present.exit()).toBe(0)
  expect(present.latest().calls).toEqual(['start', 'leave'])

  const absent = setUp({ once: true }, new CrowdError('host-unreachable', 'nothing there'))
  await absent.host(LOST)
  expect(await absent.exit()).toBe(1)
  expect(absent.events.at(-1)).toMatchObject({ code: 'host-unreachable' })
})

test('a certificate that is not trusted ends it: waiting would not help', async () => {
  const { host, exit, kinds } = setUp({}, new CrowdError('host-untrusted', 'no'))
  await host(LOST)
  expect(await exit()).toBe(78)
  expect(kinds()).toEqual(['error'])
})

test('failures that pass are tried again, with pauses that grow to a minute', async () => {
  const { fail, timers, joins, exit, events, latest } = setUp()
  const pauses: number[] = []
  for (let round = 0; round < 9; round += 1) {
    fail('pool-full')
    const last = events.at(-1)
    const pauseMs = last?.event === 'retrying' ? last.pauseMs : 0
    pauses.push(pauseMs)
    await timers.advance(pauseMs - 1)
    expect(joins).toHaveLength(round + 1)
    await timers.advance(1)
    expect(joins).toHaveLength(round + 2)
  }
  expect(pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000])
  expect(pauses.at(-1)).toBe(60_000)
  // A stage that serves shows that the trouble is over.
  latest().change({ phase: 'serving', range: { start: 0, end: 2 } })
  fail('stage-failed')
  expect(events.at(-1)).toEqual({ event: 'retrying', pauseMs: 1_000 })
  expect(await exit()).toBeNull()
})

test.each([
  ['wrong-secret', 78],
  ['protocol-mismatch', 78],
  ['replaced', 78],
  // A driver that is installed later makes the next start a success.
  ['provider-unavailable', 1],
] as const)('%s ends it with an error and %d', async (code, exitCode) => {
  const { fail, exit, kinds, timers } = setUp()
  fail(code)
  expect(await exit()).toBe(exitCode)
  expect(kinds()).toEqual(['error'])
  expect(timers.pending).toBe(0)
})

test('a link without a secret to a private pool: says what is missing', async () => {
  const { fail, exit, events } = setUp({ link: { ...config.link, secret: '' } })
  fail('wrong-secret')
  expect(await exit()).toBe(78)
  expect(events.map(textOf).join()).toMatch(/copy the whole join link/)
})

test('drains: takes nothing new, waits for the answers, tells the host, ends well', async () => {
  const { run, latest, exit, events, timers } = setUp()
  latest().change({ phase: 'serving', sessions: 2 })
  run.drain()
  run.drain()
  await settle()
  expect(latest().calls).toEqual(['start', 'pause'])
  latest().change({ sessions: 1 })
  expect(await exit()).toBeNull()
  latest().change({ sessions: 0 })
  expect(await exit()).toBe(0)
  expect(latest().calls).toEqual(['start', 'pause', 'leave'])
  expect(events.slice(-2)).toEqual([{ event: 'draining', sessions: 2 }, { event: 'left' }])
  expect(timers.pending).toBe(0)
})

test('an answer that does not end is waited for no longer than the limit', async () => {
  const { run, latest, exit, timers } = setUp()
  latest().change({ phase: 'serving', sessions: 1 })
  run.drain()
  await timers.advance(DRAIN_MS - 1)
  expect(await exit()).toBeNull()
  await timers.advance(1)
  expect(await exit()).toBe(0)
})

test('can be told to leave while it waits to join again', async () => {
  const { run, fail, exit, joins, timers } = setUp()
  fail('pool-full')
  run.drain()
  expect(await exit()).toBe(0)
  await timers.advance(3_600_000)
  expect(joins).toHaveLength(1)
})
