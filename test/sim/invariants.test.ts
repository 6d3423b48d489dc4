import { expect, test } from 'vitest'
import type { PairId, PeerId, RequestId, SessionId } from '../../sdk/core/ids.ts'
import { SESSION_IDLE_MS } from '../../sdk/core/limits.ts'
import { createStageSizes } from '../../sdk/core/plan/memory.ts'
import { GREEDY } from '../../sdk/core/sampling/params.ts'
import { apply } from '../../sdk/core/swarm/apply.ts'
import type { SwarmEvent } from '../../sdk/core/swarm/events.ts'
import { emptySwarm, type SwarmState } from '../../sdk/core/swarm/state.ts'
import { modelOf } from '../support/host-fixtures.ts'
import {
  coverageHolds,
  createTokenOrder,
  createWatch,
  overdue,
  pairsHaveEnds,
  pledgeHolds,
  sessionsApart,
} from './invariants.ts'

const model = modelOf()
const EMPTY = emptySwarm({ model, minStages: 1, firstSession: 1, pairPrefix: 't' })
const ALL = { start: 0, end: model.blocks.length }
const [ANN, BOB] = ['ann', 'bob'] as [PeerId, PeerId]

function after(state: SwarmState, ...events: readonly SwarmEvent[]): SwarmState {
  return events.reduce((next, event) => apply(next, event, 0), state)
}

function joined(peer: PeerId, memoryBytes = 1e9): SwarmEvent[] {
  const pledge = {
    memoryBytes,
    provider: 'wasm' as const,
    threads: 1,
    cached: new Set<never>(),
    hidden: false,
  }
  return [
    { kind: 'peer-joined', peer, name: peer, role: 'worker' },
    { kind: 'pledged', peer, pledge, revision: model.revision },
  ]
}

const assigned = (peer: PeerId, range: SwarmRange): SwarmEvent => ({
  kind: 'assigned',
  peer,
  range,
  keep: null,
  reason: '',
})
type SwarmRange = { start: number; end: number } | null

function ready(state: SwarmState, peer: PeerId): SwarmState {
  const assignment = state.peers.get(peer)?.assignment?.number ?? 0
  const bytes = { doneBytes: 0, totalBytes: 0, fetchedBytes: 0 }
  return after(state, {
    kind: 'stage-reported',
    peer,
    assignment,
    state: 'ready',
    ...bytes,
    error: null,
  })
}

/** Two devices, the first one ready with everything, the second with what is given. */
function two(range: SwarmRange): SwarmState {
  const state = after(
    EMPTY,
    ...joined(ANN),
    ...joined(BOB),
    assigned(ANN, ALL),
    assigned(BOB, range),
  )
  return ready(ready(state, ANN), BOB)
}

function moved(state: SwarmState, range: SwarmRange): string[] {
  const event = assigned(ANN, range)
  return coverageHolds(state, event, after(state, event))
}

test('coverage: an order must not take the last ready copy of a block', () => {
  expect(moved(two(ALL), { start: 0, end: 2 })).toEqual([])
  expect(moved(two({ start: 2, end: 8 }), { start: 0, end: 2 })).toHaveLength(2)
  expect(moved(two({ start: 2, end: 8 }), null)).toHaveLength(2)
  const open = ready(after(EMPTY, ...joined(ANN), assigned(ANN, { start: 0, end: 4 })), ANN)
  expect(moved(open, { start: 4, end: 8 })).toEqual([])
  // Not the order's doing: nothing was covered before.
  expect(coverageHolds(EMPTY, assigned(ANN, null), EMPTY)).toEqual([])
})

test('coverage: a device that pledges less than it holds may be moved', () => {
  const less = after(two(null), ...joined(ANN, 10).slice(1))
  expect(moved(less, null)).toEqual([])
})

test('pledge: an order must fit it, also where it turned out to be less', () => {
  const state = after(EMPTY, ...joined(ANN, 30_000))
  const give = (from: SwarmState, range: SwarmRange): string[] => {
    const event = assigned(ANN, range)
    return pledgeHolds(from, event, after(from, event))
  }
  expect(give(state, { start: 0, end: 2 })).toEqual([])
  expect(give(state, ALL)).toEqual(['ann was given more than it pledged'])
  expect(give(state, null)).toEqual([])
  const peer = state.peers.get(ANN)
  if (peer === undefined) throw new Error('ann is gone')
  const limited = { ...state, peers: new Map([[ANN, { ...peer, memoryLimit: 500 }]]) }
  expect(give(limited, { start: 0, end: 2 })).toHaveLength(1)
})

const KEY = 'ann/r'
const asked: Extract<SwarmEvent, { kind: 'asked' }> = {
  kind: 'asked',
  asker: ANN,
  request: 'r' as RequestId,
  prompt: [5, 6, 7],
  maxTokens: 4,
  stopIds: [],
  sampling: GREEDY,
}
const opened = (key: string, session: number): SwarmEvent => ({
  kind: 'session-opened',
  valid: 0,
  epoch: 1,
  key,
  session: session as SessionId,
  stages: [{ peer: BOB, range: ALL }],
})

test('pledge: what a session adds must fit beside the others, but a device may itself take back what it lent', () => {
  const bytes = createStageSizes(model).bytes('wasm', ALL)
  const lent = ready(
    after(EMPTY, ...joined(BOB, bytes), assigned(BOB, ALL), ...['r', 's', 't'].map(askedAs)),
    BOB,
  )
  // The plan has room for two whole contexts.
  const full = after(lent, opened('ann/r', 7), opened('ann/s', 8))
  expect(pledgeHolds(lent, opened('ann/s', 8), full)).toEqual([])
  const over = after(full, opened('ann/t', 9))
  expect(pledgeHolds(full, opened('ann/t', 9), over)).toHaveLength(1)
  const less = after(full, ...joined(BOB, bytes - 1).slice(1))
  expect(pledgeHolds(full, asked, less)).toEqual([])
  // Neither one that is freed nor a kept one counts for nothing, or twice.
  const ended: SwarmEvent = { kind: 'request-ended', key: 'ann/s', reason: 'stop', error: null }
  const next = after(full, { kind: 'rows-freed', key: 'ann/r', peer: BOB }, ended)
  expect(pledgeHolds(next, opened('ann/t', 9), after(next, opened('ann/t', 9)))).toEqual([])
})

function askedAs(request: string): SwarmEvent {
  return { ...asked, request: request as RequestId }
}

const token = (position: number): SwarmEvent => ({
  kind: 'token-chosen',
  key: KEY,
  position,
  sampled: { token: 1, logprob: 0, top: [] },
})

test('tokens: none is left out, doubled, or comes after the end', () => {
  const check = createTokenOrder()
  const each = (...events: readonly SwarmEvent[]): string[] => events.flatMap(check)
  expect(each(asked, token(3), token(4))).toEqual([])
  expect(each(token(4))).toEqual([`${KEY} got position 4, not 5`])
  expect(each(token(7))).toEqual([`${KEY} got position 7, not 6`])
  expect(each({ kind: 'request-ended', key: KEY, reason: 'stop', error: null }, token(7))).toEqual([
    `${KEY} is over and got a token`,
  ])
  expect(each({ ...asked, answered: [8, 9] }, token(5))).toEqual([])
})

test('sessions: each its own, and epochs only rise', () => {
  const state = after(EMPTY, asked, { ...asked, request: 's' as RequestId })
  const one = after(state, opened(KEY, 7))
  expect(sessionsApart(state, opened(KEY, 7), one)).toEqual([])
  const same = opened('ann/s', 7)
  expect(sessionsApart(one, same, after(one, same))).toEqual(['session 7 is used 2 times'])
  expect(sessionsApart(one, opened(KEY, 7), one)).toEqual([`${KEY} went from epoch 1 to 1`])
})

test('pairs: both ends are here', () => {
  const state = after(two(ALL), { kind: 'pair-opened', from: ANN, to: BOB })
  expect(pairsHaveEnds(EMPTY, asked, state)).toEqual([])
  const pair = [...state.pairs.values()][0]
  if (pair === undefined) throw new Error('no pair')
  const forged = { ...pair, to: 'nobody' as PeerId }
  const wrong = { ...state, pairs: new Map([['p' as PairId, forged]]) }
  expect(pairsHaveEnds(EMPTY, asked, wrong)).toHaveLength(1)
})

test('progress: what neither goes on nor ends within its limit is named', () => {
  const running = after(EMPTY, asked, opened(KEY, 7), { kind: 'session-started', key: KEY })
  expect(overdue(running, SESSION_IDLE_MS)).toEqual([])
  expect(overdue(running, SESSION_IDLE_MS + 2_000)).toHaveLength(1)
  const queued = after(EMPTY, asked)
  expect(overdue(queued, SESSION_IDLE_MS + 2_000)).toEqual([])
  const ended = after(running, { kind: 'request-ended', key: KEY, reason: 'stop', error: null })
  expect(overdue(ended, 1e9)).toEqual([])
})

test('the watch compares each state with the one before it', () => {
  const watch = createWatch(EMPTY)
  const state = two({ start: 2, end: 8 })
  watch.observe(asked, state, 0)
  const event = assigned(ANN, null)
  watch.observe(event, after(state, event), 5)
  expect(watch.objections).toEqual([
    'coverageHolds at 5 ms: block 0 has no holder any more: ann was moved',
    'coverageHolds at 5 ms: block 1 has no holder any more: ann was moved',
  ])
})
