import { describe, expect, test } from 'vitest'
import { deviceOf, hashOf, modelOf, seededRandom } from '../../../test/support/host-fixtures.ts'
import type { BlockRange } from '../model/block-range.ts'
import { planSwarm, type SwarmPlan } from './assign.ts'
import { layersIn, type PlanDevice, type PlanModel } from './device.ts'
import { createStageSizes } from './memory.ts'
import { bestTiling, uncovered } from './tiling.ts'

const text = (range: BlockRange | null): string =>
  range === null ? 'spare' : `${range.start}-${range.end}`

function ranges(plan: SwarmPlan): string[] {
  return plan.assignments.map((item) => text(item.range))
}

function settle(devices: readonly PlanDevice[], plan: SwarmPlan, ready = true): PlanDevice[] {
  return devices.map((device, index) => {
    const range = plan.assignments[index]?.range ?? null
    return { ...device, range, ready: ready && range !== null }
  })
}

const model = modelOf()

describe('planSwarm', () => {
  test('three stages of six layers: the embedding goes with the first, the head with the last', () => {
    const devices = ['a', 'b', 'c'].map((name) => deviceOf(name))
    const plan = planSwarm({ model, devices, minStages: 3 })
    expect(ranges(plan)).toEqual(['0-3', '3-5', '5-8'])
    expect(plan.missing).toEqual([])
  })

  test('newcomers one after the other get the same chain, the fourth is a replica', () => {
    let devices: PlanDevice[] = []
    for (const name of ['a', 'b', 'c', 'd']) {
      devices = [...devices, deviceOf(name)]
      devices = settle(devices, planSwarm({ model, devices, minStages: 3 }))
    }
    expect(devices.slice(0, 3).map((one) => text(one.range))).toEqual(['0-3', '3-5', '5-8'])
    expect(['0-3', '3-5', '5-8']).toContain(text(devices[3]?.range ?? null))
  })

  test('four stages of six layers share them 2, 2, 1, 1, and three devices are not enough', () => {
    const three = ['a', 'b', 'c'].map((name) => deviceOf(name))
    expect(planSwarm({ model, devices: three, minStages: 4 }).missing).toEqual([
      { start: 6, end: 8 },
    ])
    const four = [...three, deviceOf('d')]
    expect(ranges(planSwarm({ model, devices: four, minStages: 4 }))).toEqual([
      '0-3',
      '3-5',
      '5-6',
      '6-8',
    ])
  })

  test('one device that can hold the model takes it whole, and so does the next', () => {
    const devices = [deviceOf('a'), deviceOf('b')]
    expect(ranges(planSwarm({ model, devices, minStages: 1 }))).toEqual(['0-8', '0-8'])
  })

  test('a device that can hold everything replaces a chain that is still open', () => {
    const small = deviceOf('a', { pledgeBytes: 25_000, range: { start: 0, end: 3 }, ready: true })
    const plan = planSwarm({ model, devices: [small, deviceOf('b')], minStages: 1 })
    expect(ranges(plan)).toEqual(['0-3', '0-8'])
  })

  test('the pledge holds weights and the caches of two sessions', () => {
    // One layer: 10 000 bytes and 8 bytes × 16 tokens × 2 sessions.
    const exact = deviceOf('a', { pledgeBytes: 1_000 + 2 * 10_256 })
    expect(ranges(planSwarm({ model, devices: [exact], minStages: 1 }))).toEqual(['0-3'])
    const short = { ...exact, pledgeBytes: exact.pledgeBytes - 1 }
    expect(ranges(planSwarm({ model, devices: [short], minStages: 1 }))).toEqual(['0-2'])
  })

  test.each(['q4', 'q8'] as const)(
    '%s blocks count packed on WebGPU, expanded on WASM',
    (dtype) => {
      const base = modelOf()
      const packed: PlanModel = {
        ...base,
        dtype,
        blocks: base.blocks.map((block) => ({ ...block, f32Bytes: block.dataBytes * 8 })),
      }
      const pledgeBytes = 65_000
      const wasm = deviceOf('a', { pledgeBytes })
      const gpu = deviceOf('a', { pledgeBytes, provider: 'webgpu' })
      expect(ranges(planSwarm({ model: packed, devices: [wasm], minStages: 1 }))).toEqual(['0-1'])
      expect(ranges(planSwarm({ model: packed, devices: [gpu], minStages: 1 }))).toEqual(['0-8'])
    },
  )

  test('paused, failed and too small devices are spares that know why', () => {
    const devices = [
      deviceOf('paused', { pledgeBytes: 0 }),
      deviceOf('failed', { usable: false }),
      deviceOf('tiny', { pledgeBytes: 10 }),
    ]
    const plan = planSwarm({ model, devices, minStages: 1 })
    expect(plan.assignments.map((item) => item.reason)).toEqual([
      'paused: nothing is pledged',
      'set aside after a failure',
      'spare: the pledge is too small, one block takes 1 kB',
    ])
    expect(plan.missing).toEqual([{ start: 0, end: 8 }])
  })

  test('the fastest devices serve when all are there from the start', () => {
    const devices = [8, 1, 4, 2].map((ms, index) => deviceOf(`d${index}`, { msPerLayer: ms }))
    const plan = planSwarm({ model, devices, minStages: 2 })
    expect(plan.assignments[1]?.range).toEqual({ start: 0, end: 4 })
    expect(plan.assignments[3]?.range).toEqual({ start: 4, end: 8 })
  })

  test('a hidden tab is used only where nobody else can', () => {
    const hidden = deviceOf('a', { hidden: true, msPerLayer: 1 })
    const visible = deviceOf('b', { msPerLayer: 50 })
    const plan = planSwarm({ model, devices: [hidden, visible], minStages: 2 })
    expect(ranges(plan)).toEqual(['4-8', '0-4'])
    expect(ranges(planSwarm({ model, devices: [hidden], minStages: 1 }))).toEqual(['0-8'])
  })

  test('a tab that returns gets back what it has stored', () => {
    const cached = new Set<string>([4, 5].map((number) => hashOf(number)))
    const plan = planSwarm({ model, devices: [deviceOf('a', { cached })], minStages: 3 })
    expect(ranges(plan)).toEqual(['3-5'])
  })

  test('whoever returns first, all get back what they have stored, also where the stages are uneven', () => {
    const four = modelOf({ layers: 4 })
    const stored = ['0-3', '3-4', '4-6']
    const names = ['a', 'b', 'c']
    const cachedOf = (range: string): Set<string> => {
      const [start = 0, end = 0] = range.split('-').map(Number)
      return new Set(Array.from({ length: end - start }, (_, index) => hashOf(start + index + 1)))
    }
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      let devices: PlanDevice[] = []
      for (const index of order) {
        devices = [
          ...devices,
          deviceOf(names[index] ?? '', { cached: cachedOf(stored[index] ?? '') }),
        ]
        devices = settle(devices, planSwarm({ model: four, devices, minStages: 3 }))
      }
      expect(devices.map((one) => text(one.range))).toEqual(order.map((index) => stored[index]))
    }
  })

  test('a device that stored little of what it could hold is not kept small by it', () => {
    const cached = new Set<string>([hashOf(2)])
    expect(
      ranges(planSwarm({ model, devices: [deviceOf('a', { cached })], minStages: 2 })),
    ).toEqual(['0-4'])
  })

  test('when the middle leaves, the newcomer fills exactly the hole', () => {
    const devices = [
      deviceOf('a', { range: { start: 0, end: 3 }, ready: true }),
      deviceOf('c', { range: { start: 5, end: 8 }, ready: true }),
      deviceOf('new'),
    ]
    const plan = planSwarm({ model, devices, minStages: 3 })
    expect(ranges(plan)).toEqual(['0-3', '5-8', '3-5'])
    expect(plan.assignments[2]?.reason).toBe('newcomer fills layers 3–4')
  })

  test('when a stage leaves and only a replica is free, the replica moves', () => {
    const devices = [
      deviceOf('a', { range: { start: 0, end: 3 }, ready: true }),
      deviceOf('a2', { range: { start: 0, end: 3 }, ready: true }),
      deviceOf('c', { range: { start: 5, end: 8 }, ready: true }),
    ]
    const plan = planSwarm({ model, devices, minStages: 3 })
    expect(plan.missing).toEqual([])
    expect(ranges(plan).sort()).toEqual(['0-3', '3-5', '5-8'])
  })

  test('an open chain is planned anew when that closes it', () => {
    // a could hold more, but was given two layers while three devices were expected.
    const devices = [
      deviceOf('a', { range: { start: 0, end: 3 }, ready: true, pledgeBytes: 50_000 }),
      deviceOf('b', { range: { start: 3, end: 5 }, ready: true, pledgeBytes: 50_000 }),
    ]
    const plan = planSwarm({ model, devices, minStages: 1 })
    expect(plan.missing).toEqual([])
    expect(ranges(plan)).toEqual(['0-5', '5-8'])
  })

  test('a complete chain is left alone, whatever would be faster', () => {
    const devices = [
      deviceOf('a', { range: { start: 0, end: 3 }, ready: true, msPerLayer: 90 }),
      deviceOf('b', { range: { start: 3, end: 8 }, ready: true, msPerLayer: 1 }),
    ]
    expect(ranges(planSwarm({ model, devices, minStages: 1 }))).toEqual(['0-3', '3-8'])
  })

  test('a lowered pledge takes blocks away from the device', () => {
    const devices = [
      deviceOf('a', { range: { start: 0, end: 8 }, ready: true, pledgeBytes: 45_000 }),
      deviceOf('b'),
    ]
    const plan = planSwarm({ model, devices, minStages: 1 })
    expect(ranges(plan)[0]).not.toBe('0-8')
    expect(plan.missing).toEqual([])
  })
})

type Case = {
  readonly model: PlanModel
  readonly minStages: number
  readonly devices: PlanDevice[]
}

/** A random swarm, some of it settled by an earlier plan and then changed. */
function randomCase(seed: number): Case {
  const random = seededRandom(seed)
  const pick = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1))
  const layers = pick(1, 12)
  const shape = {
    layers,
    layerBytes: pick(1, 20) * 1_000,
    embeddingBytes: pick(0, 30) * 1_000,
    headBytes: pick(0, 30) * 1_000,
  }
  const theModel = modelOf(shape)
  const minStages = pick(1, 4)
  let devices: PlanDevice[] = []
  for (let index = pick(0, 9); index > 0; index--) {
    devices.push(
      deviceOf(`d${index}`, {
        pledgeBytes: random() < 0.1 ? 0 : pick(1, 60) * 3_000,
        msPerLayer: random() < 0.5 ? null : pick(1, 50),
        hidden: random() < 0.2,
        usable: random() > 0.1,
        cached: new Set(random() < 0.3 ? [hashOf(pick(1, layers + 2))] : []),
      }),
    )
    if (random() < 0.5) {
      const plan = planSwarm({ model: theModel, devices, minStages })
      devices = settle(devices, plan, random() < 0.8)
    }
    if (random() < 0.2) devices = devices.slice(1)
  }
  return { model: theModel, minStages, devices }
}

describe('planSwarm, 600 random swarms', () => {
  const cases = Array.from({ length: 600 }, (_, seed) => ({ seed, ...randomCase(seed) }))

  test('no pledge is exceeded and ranges are real', () => {
    for (const { seed, ...input } of cases) {
      const sizes = createStageSizes(input.model)
      const plan = planSwarm(input)
      expect(plan.assignments.map((item) => item.peer)).toEqual(
        input.devices.map((device) => device.peer),
      )
      for (const [index, { range }] of plan.assignments.entries()) {
        const device = input.devices[index]
        if (range === null || !device) continue
        const where = `seed ${seed}, ${device.peer}`
        expect(sizes.bytes(device.provider, range), where).toBeLessThanOrEqual(device.pledgeBytes)
        expect(device.usable, where).toBe(true)
        const cap = Math.ceil(
          input.model.layerCount / Math.min(input.minStages, input.model.layerCount),
        )
        expect(layersIn(range, input.model.layerCount), where).toBeLessThanOrEqual(cap)
      }
    }
  })

  test('missing says the truth: chained ranges cover the rest end to end', () => {
    for (const { seed, ...input } of cases) {
      const plan = planSwarm(input)
      const tiles = plan.assignments.flatMap(({ range }) =>
        range ? [{ owner: null, range, cost: 0 }] : [],
      )
      const tiling = bestTiling(input.model.blocks.length, tiles)
      expect(tiling.gaps, `seed ${seed}`).toEqual(plan.missing)
    }
  })

  test('planning again changes nothing', () => {
    for (const { seed, ...input } of cases) {
      let devices = input.devices
      let plan = planSwarm(input)
      // A replica may still move, one at a time; then it is quiet.
      for (let round = 0; round < 6; round++) {
        devices = settle(devices, plan)
        plan = planSwarm({ ...input, devices })
      }
      const again = settle(devices, plan)
      expect(
        again.map((one) => one.range),
        `seed ${seed}`,
      ).toEqual(devices.map((one) => one.range))
    }
  })

  test('ST3 a complete ring never loses its last ready copy of a block', () => {
    for (const { seed, ...input } of cases) {
      const sizes = createStageSizes(input.model)
      const holds = input.devices.filter(
        (one) =>
          one.ready &&
          one.usable &&
          one.range &&
          sizes.bytes(one.provider, one.range) <= one.pledgeBytes,
      )
      const tiles = holds.flatMap((one) =>
        one.range ? [{ owner: one, range: one.range, cost: 0 }] : [],
      )
      if (bestTiling(input.model.blocks.length, tiles).gaps.length > 0) continue
      const plan = planSwarm(input)
      const stay = holds.filter((one) => {
        const next = plan.assignments.find((item) => item.peer === one.peer)
        return text(next?.range ?? null) === text(one.range)
      })
      const left = uncovered(
        input.model.blocks.length,
        stay.flatMap((one) => (one.range ? [one.range] : [])),
      )
      expect(left, `seed ${seed}`).toEqual([])
    }
  })

  test('a swarm that can cover the model does', () => {
    for (const { seed, ...input } of cases) {
      const sizes = createStageSizes(input.model)
      const all = { start: 0, end: input.model.blocks.length }
      const able = input.devices.filter((one) => one.usable)
      if (input.minStages > 1) continue
      const oneIsEnough = able.some((one) => sizes.bytes(one.provider, all) <= one.pledgeBytes)
      const coverable = oneIsEnough || coversInSomeOrder(input, able)
      if (coverable) expect(planSwarm(input).missing, `seed ${seed}`).toEqual([])
    }
  })
})

/** Brute force for small swarms: some order in which each device takes all it can. */
function coversInSomeOrder(input: Case, devices: readonly PlanDevice[], from = 0): boolean {
  if (from === input.model.blocks.length) return true
  if (devices.length > 5) return false
  const sizes = createStageSizes(input.model)
  return devices.some((device) => {
    let end = from
    while (
      end < input.model.blocks.length &&
      sizes.bytes(device.provider, { start: from, end: end + 1 }) <= device.pledgeBytes
    )
      end += 1
    if (end === from) return false
    return coversInSomeOrder(
      input,
      devices.filter((other) => other !== device),
      end,
    )
  })
}
