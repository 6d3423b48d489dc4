import { describe, expect, test } from 'vitest'
import type { SwarmSnapshot } from '../../sdk/protocol/swarm-snapshot.ts'
import { aPeer, aRequest, aSwarm, pairId, peerId } from '../fixtures/snapshots.ts'
import { recentLaps } from './lap.ts'
import { buildLayerMap } from './layer-map.ts'
import { planRows } from './plan-rows.ts'
import { qrPath, QUIET_MODULES } from './qr-path.ts'

const first = aPeer({ peer: peerId('p1'), name: 'attic', range: { start: 0, end: 4 } })
const second = aPeer({ peer: peerId('p2'), name: '', range: { start: 4, end: 8 }, stepMs: 5 })

describe('the layer map', () => {
  test('has a row for each holder in the order of the model, and a column for each block', () => {
    const map = buildLayerMap(aSwarm({ peers: [second, first] }))
    expect(map.columns.map(({ label }) => label)).toEqual(['E', '1', '2', '3', '4', '5', '6', 'H'])
    expect(map.rows.map(({ name, summary }) => [name, summary])).toEqual([
      ['attic', 'embedding and layers 1–3'],
      ['p2', 'layers 4–6 and head'],
    ])
    expect(map.rows[0]?.cells).toEqual([
      ...Array<string>(4).fill('ready'),
      ...Array<string>(4).fill('none'),
    ])
  })

  test('counts a block as held only by devices that are ready', () => {
    const fetching = { ...second, state: 'fetching' as const }
    const paused = aPeer({ peer: peerId('p3'), state: 'paused', range: { start: 4, end: 6 } })
    const map = buildLayerMap(aSwarm({ peers: [first, fetching, paused] }))
    expect(map.columns.map(({ copies }) => copies)).toEqual([1, 1, 1, 1, 0, 0, 0, 0])
    expect(map.rows[1]?.cells.slice(4)).toEqual(Array(4).fill('coming'))
    expect(map.rows[2]?.cells).not.toContain('ready')
  })

  test('leaves out those who hold nothing', () => {
    const asker = aPeer({ role: 'asker', range: null })
    expect(buildLayerMap(aSwarm({ peers: [asker] })).rows).toEqual([])
  })
})

describe('the plan', () => {
  const plan = (devices: SwarmSnapshot['plan']['devices']): SwarmSnapshot['plan'] => ({
    lapMs: 12,
    stages: 2,
    missing: [],
    advice: '',
    devices,
  })
  const entry = (
    peer: string,
    change: Partial<SwarmSnapshot['plan']['devices'][number]>,
  ): SwarmSnapshot['plan']['devices'][number] => ({
    peer: peerId(peer),
    range: null,
    keep: null,
    bytes: 0,
    reason: 'why',
    ...change,
  })

  test('lists who is to hold something else, and what spares keep', () => {
    const spare = aPeer({ peer: peerId('p3'), name: 'phone', range: null, state: 'spare' })
    const swarm = aSwarm({
      peers: [first, { ...second, state: 'loading' }, spare],
      plan: plan([
        entry('p1', { range: { start: 0, end: 4 } }),
        entry('p2', { range: { start: 4, end: 8 } }),
        entry('p3', { keep: { start: 4, end: 6 } }),
        entry('gone', {}),
      ]),
    })
    expect(planRows(swarm).map(({ name, now, next }) => [name, now, next])).toEqual([
      ['p2', 'loading', 'layers 4–6 and head'],
      ['phone', 'nothing', 'nothing, keeps layers 4–5'],
    ])
  })
})

describe('the time of a lap', () => {
  test('is split into compute, wire and waiting, hop by hop', () => {
    const swarm = aSwarm({
      peers: [first, second],
      links: [
        {
          pair: pairId('a'),
          from: peerId('p2'),
          to: peerId('p1'),
          state: 'open',
          path: 'direct',
          rttMs: 1.5,
          relayedBytes: 0,
        },
      ],
      requests: [
        aRequest({
          stages: [peerId('p1'), peerId('p2')],
          hops: [
            { computeMs: 9, wireMs: 0.75 },
            { computeMs: null, wireMs: 1 },
          ],
          lapMs: 20,
          computeMs: 15,
        }),
      ],
    })
    const [lap] = recentLaps(swarm, 5)
    expect(lap).toMatchObject({ lapMs: 20, computeMs: 15, wireMs: 1.75, waitMs: 3.25 })
    expect(
      lap?.hops.map(({ name, computeMs, wireMs, link }) => [name, computeMs, wireMs, link?.path]),
    ).toEqual([
      ['attic', 9, 0.75, 'direct'],
      ['p2', null, 1, 'direct'],
    ])
  })

  test('shows the newest first and skips what was not measured', () => {
    const requests = [
      aRequest({ id: 'old', lapMs: 30 }),
      aRequest({ id: 'failed', lapMs: null }),
      aRequest({ id: 'new', lapMs: 10, computeMs: 12 }),
    ]
    const laps = recentLaps(aSwarm({ requests }), 5)
    expect(laps.map(({ request }) => request)).toEqual(['new', 'old'])
    expect(laps[0]).toMatchObject({ waitMs: 0 })
    expect(recentLaps(aSwarm({ requests }), 1)).toHaveLength(1)
  })

  test('does not show as wire what was not measured, nor more than the compute leaves', () => {
    const lap = (...wireMs: (number | null)[]) => {
      const hops = wireMs.map((ms) => ({ computeMs: 1, wireMs: ms }))
      const stages = wireMs.map((_, index) => peerId(`p${index}`))
      const requests = [aRequest({ lapMs: 20, computeMs: 15, stages, hops })]
      return recentLaps(aSwarm({ requests }), 1)[0]
    }
    expect(lap(1, null)).toMatchObject({ wireMs: null, waitMs: 5 })
    expect(lap(4, 9)).toMatchObject({ wireMs: 5, waitMs: 0 })
  })

  test('names a stage whose device is gone', () => {
    const requests = [aRequest({ stages: [peerId('ghost')] })]
    expect(recentLaps(aSwarm({ requests }), 1)[0]?.hops[0]?.name).toMatch(/left/)
  })
})

test('a QR code is one square for each dark module, inside the quiet border', () => {
  const q = QUIET_MODULES
  expect(qrPath([1, 0, 0, 1], 2)).toBe(`M${q} ${q}h1v1h-1zM${q + 1} ${q + 1}h1v1h-1z`)
})
