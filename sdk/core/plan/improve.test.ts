import { describe, expect, test } from 'vitest'
import { deviceOf, modelOf } from '../../../test/support/host-fixtures.ts'
import type { PeerId } from '../ids.ts'
import { planSwarm, type SwarmPlan } from './assign.ts'
import type { PlanDevice } from './device.ts'
import type { HopCost } from './route.ts'

/** Layers of 10 000 bytes and 256 of caches: so much is pledged for so many layers, ends included. */
const forLayers = (layers: number): number => 2_000 + layers * 10_256
const model = modelOf()
const all = { start: 0, end: 8 }
const front = { start: 0, end: 4 }
const back = { start: 4, end: 8 }

function held(
  name: string,
  range: PlanDevice['range'],
  over: Partial<PlanDevice> = {},
): PlanDevice {
  return deviceOf(name, { range, ready: true, pledgeBytes: forLayers(3), msPerLayer: 10, ...over })
}

function plan(devices: readonly PlanDevice[], hopMs: HopCost = () => 1, minStages = 1): SwarmPlan {
  return planSwarm({ model, devices, minStages, hopMs })
}

const rangesOf = (made: SwarmPlan): (string | null)[] =>
  made.assignments.map(({ range }) => (range === null ? null : `${range.start}-${range.end}`))

describe('a ring that serves', () => {
  // The slow stage is 60 of 92 ms.
  const slowFront = held('slow', front, { msPerLayer: 20 })
  const fastBack = held('fast', back)

  test('is made faster by a replica that isn’t needed where it is, and by nobody else', () => {
    const fastest = held('fastest', back, { msPerLayer: 2 })
    const made = plan([slowFront, fastBack, fastest])
    expect(rangesOf(made)).toEqual(['0-4', '0-4', '4-8'])
    expect(made.assignments[1]?.reason).toBe('makes the ring faster: embedding and layers 1–3')
    expect(made.chain).toEqual([front, back])
  })

  test('is left alone for less than a fifth of its lap', () => {
    // 15 instead of 20 ms for three layers: 77 instead of 92 ms.
    const spare = held('spare', back, { msPerLayer: 15 })
    expect(rangesOf(plan([slowFront, fastBack, spare]))).toEqual(['0-4', '4-8', '4-8'])
  })

  test('loses nobody before the faster ring is ready; then the slow stage is a copy', () => {
    const coming = held('spare', front, { msPerLayer: 2, ready: false })
    const during = plan([slowFront, fastBack, coming])
    expect(rangesOf(during)).toEqual(['0-4', '4-8', '0-4'])
    const after = plan([slowFront, fastBack, { ...coming, ready: true }])
    expect(after.lapMs).toBeCloseTo(3 * 2 + 3.1 * 10 + 2)
  })

  test('loses nobody who alone is ready while the ring as a whole is not', () => {
    // Blocks 4 to 7 are ready on the last one only: the others are coming, or were lost a moment ago.
    const coming = { ...slowFront, ready: false }
    const gone = held('gone', back, { msPerLayer: 2, ready: false })
    const last = held('last', back, { msPerLayer: 5 })
    expect(rangesOf(plan([coming, gone, last]))).toEqual(['0-4', '4-8', '4-8'])
    // Of two copies one may go, and not both.
    const made = plan([coming, gone, last, { ...last, peer: 'other' as PeerId }])
    expect(rangesOf(made).slice(2).sort()).toEqual(['0-4', '4-8'])
  })

  test('a long way counts: a near replica takes over from a far one', () => {
    const far: HopCost = (a, b) => ([a, b].includes('slow' as PeerId) ? 100 : 1)
    const near = held('near', back, { msPerLayer: 10 })
    const even = { ...slowFront, msPerLayer: 10 }
    expect(rangesOf(plan([even, fastBack, near], far))).toEqual(['0-4', '4-8', '0-4'])
    expect(rangesOf(plan([even, fastBack, near]))).toEqual(['0-4', '4-8', '4-8'])
  })

  test('one device that holds the whole model takes whole requests, unless stages are asked for', () => {
    const big = deviceOf('big', { pledgeBytes: 1e9, msPerLayer: 10 })
    expect(rangesOf(plan([fastBack, held('front', front), big]))[2]).toBe('0-8')
    const made = plan([fastBack, held('front', front), big], () => 1, 2)
    expect(['0-4', '4-8']).toContain(rangesOf(made)[2])
  })

  test('one that would hold it much more slowly helps the weakest span instead', () => {
    const big = deviceOf('big', { pledgeBytes: 1e9, msPerLayer: 50 })
    expect(rangesOf(plan([fastBack, held('front', front), big]))[2]).not.toBe('0-8')
  })

  test('small devices beside a whole replica make a ring of their own', () => {
    const whole = held('whole', all, { pledgeBytes: 1e9 })
    const small = [1, 2].map((index) => deviceOf(`s${index}`, { pledgeBytes: forLayers(3) }))
    expect(
      rangesOf(plan([whole, ...small]))
        .slice(1)
        .sort(),
    ).toEqual(['0-4', '4-8'])
  })
})

describe('warm spares', () => {
  test('keep as much of the weakest span as they could load', () => {
    const small = deviceOf('small', { pledgeBytes: forLayers(2) })
    const made = plan([held('a', front), held('a2', front), held('b', back), small])
    expect(made.assignments[3]).toMatchObject({ range: null, keep: { start: 4, end: 6 } })
    expect(made.assignments[3]?.reason).toBe('spare: keeps layers 4–5 ready to step in')
  })

  test('keep it when another span gets weaker, and step in with it', () => {
    const keep = { start: 4, end: 6 }
    const small = deviceOf('small', { pledgeBytes: forLayers(2), keep })
    const made = plan([held('a', front), held('b', back), held('b2', back), small])
    expect(made.assignments[3]?.keep).toEqual(keep)
  })

  test('come after eight copies of each span', () => {
    const many = Array.from({ length: 20 }, (_, index) =>
      deviceOf(`d${index}`, { pledgeBytes: forLayers(3), msPerLayer: 10 }),
    )
    const made = plan(many)
    const copies = (range: string): number => rangesOf(made).filter((one) => one === range).length
    expect([copies('0-4'), copies('4-8')]).toEqual([8, 8])
    expect(made.assignments.filter(({ keep }) => keep !== null)).toHaveLength(4)
  })
})
