import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { modelOf } from '../../../test/support/host-fixtures.ts'
import type { PeerId, RequestId, SessionId } from '../ids.ts'
import { GREEDY } from '../sampling/params.ts'
import { apply } from './apply.ts'
import type { SwarmEvent } from './events.ts'
import { hostSlept } from './host-slept.ts'
import { emptySwarm, type SwarmState } from './state.ts'

const model = modelOf()
const [ANN, BOB] = ['ann', 'bob'] as [PeerId, PeerId]
const KEY = 'bob/r'
const range = { start: 0, end: model.blocks.length }
const SESSION = 7 as SessionId

const pledge = {
  memoryBytes: 1e9,
  provider: 'wasm' as const,
  threads: 1,
  cached: new Set<never>(),
  hidden: true,
}
const opened = { kind: 'session-opened', key: KEY, session: SESSION, valid: 0 } as const
const stages = [{ peer: ANN, range }]

/** Leads to a state in which everything that may be timed is. */
const EVENTS: readonly SwarmEvent[] = [
  { kind: 'peer-joined', peer: ANN, name: 'ann', role: 'worker' },
  { kind: 'pledged', peer: ANN, pledge, revision: model.revision },
  { kind: 'assigned', peer: ANN, range, keep: null, reason: '' },
  { kind: 'stats-reported', peer: ANN, assignment: 1, steps: 2, tokens: 2, stepMs: 5 },
  { kind: 'beat', peer: ANN, computing: true, sessions: [] },
  { kind: 'peer-dropped', peer: ANN },
  { kind: 'pair-opened', from: ANN, to: BOB },
  { kind: 'sources-sought' },
  {
    kind: 'asked',
    asker: BOB,
    request: 'r' as RequestId,
    prompt: [5, 6, 7],
    maxTokens: 4,
    stopIds: [],
    sampling: GREEDY,
  },
  { ...opened, epoch: 1, stages },
  { kind: 'session-started', key: KEY },
  { ...opened, epoch: 2, stages, isMove: true },
  { kind: 'session-broken', key: KEY, error: { code: 'timeout', message: '' }, faulty: [] },
  { kind: 'struck', peer: ANN, reason: '' },
  { kind: 'model-wanted', name: 'another', step: '' },
]

function timed(): SwarmState {
  const start = emptySwarm({ model, minStages: 1, firstSession: 7, pairPrefix: 't' })
  const state = EVENTS.reduce((next, event) => apply(next, event, 1_000), start)
  const kept = { session: SESSION, epoch: 1, stages, text: [], sharedRows: 0, since: 1_000 }
  return { ...state, retained: new Map([[SESSION, kept]]) }
}

const MOMENT = /^(?:\w+(?:At|Since)|at|since)$/

/** What is timed, by the way to it. */
function moments(value: unknown, path = ''): [string, unknown][] {
  if (typeof value !== 'object' || value === null) return []
  if (value instanceof Map) return [...value.values()].flatMap((one) => moments(one, `${path}[]`))
  return Object.entries(value).flatMap(([name, one]): [string, unknown][] =>
    MOMENT.test(name) ? [[`${path}.${name}`, one]] : moments(one, `${path}.${name}`),
  )
}

function declared(): string[] {
  return ['state.ts', 'request-state.ts'].flatMap((file) => {
    const text = readFileSync(new URL(file, import.meta.url), 'utf8')
    return [...text.matchAll(/^ {2}readonly (\w+)\??:/gm)]
      .map(([, name = '']) => name)
      .filter((name) => MOMENT.test(name))
  })
}

test('time in which the host stood still is taken out of every moment that the state knows', () => {
  const before = timed()
  const known = moments(before)
  const after = moments(hostSlept(before, 500))
  expect(known.map(([, at]) => at)).not.toContain(null)
  expect(after).toEqual(known.map(([path, at]) => [path, Number(at) + 500]))
  // The state above has every field that the types declare, so that a new one is checked too.
  const names = known.map(([path]) => path.split('.').at(-1) ?? '')
  expect(names.toSorted()).toEqual(declared().toSorted())
})

test('what has no moment stays without one', () => {
  const events = EVENTS.slice(0, 1)
  const start = emptySwarm({ model, minStages: 1, firstSession: 7, pairPrefix: 't' })
  const state = events.reduce((next, event) => apply(next, event, 1_000), start)
  const ann = hostSlept(state, 500).peers.get(ANN)
  expect(ann).toEqual({ ...state.peers.get(ANN), pledgeDueSince: 1_500 })
})
