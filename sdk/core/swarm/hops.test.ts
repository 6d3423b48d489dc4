import { expect, test } from 'vitest'
import { modelOf } from '../../../test/support/host-fixtures.ts'
import type { PeerId } from '../ids.ts'
import { UNKNOWN_HOP_MS } from '../plan/hop-table.ts'
import { apply } from './apply.ts'
import { hopCosts } from './hops.ts'
import { emptySwarm, type SwarmState } from './state.ts'

const [a, b, c] = ['a', 'b', 'c'] as PeerId[] as [PeerId, PeerId, PeerId]

function linked(rttMs: number): SwarmState {
  let state: SwarmState = emptySwarm({
    model: modelOf(),
    minStages: 1,
    firstSession: 1,
    pairPrefix: 't',
  })
  for (const peer of [a, b, c])
    state = apply(state, { kind: 'peer-joined', peer, name: peer, role: 'worker' }, 0)
  state = apply(state, { kind: 'pair-opened', from: a, to: b }, 0)
  const [pair] = [...state.pairs.keys()]
  if (pair === undefined) throw new Error('no pair')
  const report = { kind: 'link-reported', pair, attempt: 1, state: 'open', path: 'direct' } as const
  for (const peer of [a, b]) state = apply(state, { ...report, peer, rttMs }, 0)
  return state
}

test('a hop costs half the round trip and something for the path, both ways; unknown ones a guess', () => {
  const costs = hopCosts(linked(8))
  expect(costs(a, b)).toBe(4.5)
  expect(costs(b, a)).toBe(4.5)
  expect(costs(a, c)).toBe(UNKNOWN_HOP_MS)
})

test('a device that is far from all it met is taken to be far from the others too', () => {
  expect(hopCosts(linked(200))(a, c)).toBe(100.5)
})

test('what was measured outlives the link, but not the device; a clearly longer way brings a new plan', () => {
  const near = linked(8)
  const far = linked(200)
  expect(far.topology).toBeGreaterThan(near.topology)
  const [pair] = [...far.pairs.keys()]
  if (pair === undefined) throw new Error('no pair')
  const closed = apply(far, { kind: 'pair-closed', pair, reason: 'no longer neighbours' }, 0)
  expect(hopCosts(closed)(b, a)).toBe(100.5)
  const gone = apply(closed, { kind: 'peer-left', peer: b }, 0)
  expect(hopCosts(gone)(a, c)).toBe(UNKNOWN_HOP_MS)
})
