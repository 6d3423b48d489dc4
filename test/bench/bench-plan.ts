import type { PeerId } from '../../sdk/core/ids.ts'
import { planSwarm } from '../../sdk/core/plan/assign.ts'
import type { PlanDevice, PlanModel } from '../../sdk/core/plan/device.ts'
import { deviceOf, hashOf, modelOf, seededRandom } from '../support/host-fixtures.ts'

export type PlanRow = {
  readonly devices: number
  readonly layers: number
  readonly when: 'nobody holds anything' | 'settled' | 'three devices left'
  /** Of this process, ms; the least disturbed of the rounds. */
  readonly cpuMs: number
}

/** What is asked of 64 devices and 80 layers. */
export const PLAN_MAX_MS = 50

const ROUNDS = 6
/** Plans until a swarm has settled. */
const SETTLE = 8

/** Time for a plan of a large swarm: small phones and large ones, at random speeds and distances. */
export function benchPlan(
  sizes: readonly (readonly [devices: number, layers: number])[],
): PlanRow[] {
  return sizes.flatMap(([count, layers]) => {
    const model = modelOf({ layers, layerBytes: 1_000_000 })
    const fresh = devicesOf(count, layers)
    let settled = fresh
    for (let round = 0; round < SETTLE; round++) settled = obey(model, settled)
    const cases = [
      ['nobody holds anything', fresh],
      ['settled', settled],
      ['three devices left', settled.slice(3)],
    ] as const
    return cases.map(([when, devices]) => ({
      devices: count,
      layers,
      when,
      cpuMs: cpuOf(() => plan(model, devices)),
    }))
  })
}

function devicesOf(count: number, layers: number): PlanDevice[] {
  const random = seededRandom(7)
  return Array.from({ length: count }, (_, index) =>
    deviceOf(`d${index}`, {
      pledgeBytes: Math.floor(1e6 + random() * (index % 8 === 0 ? 12e6 : 3e6)),
      msPerLayer: random() * 20,
      cached: new Set([hashOf(1 + (index % layers))]),
    }),
  )
}

function plan(model: PlanModel, devices: readonly PlanDevice[]): ReturnType<typeof planSwarm> {
  return planSwarm({ model, devices, minStages: 1, hopMs })
}

/** Any distances that differ and are the same both ways. */
function hopMs(from: PeerId, to: PeerId): number {
  return 1 + ((Number(from.slice(1)) + Number(to.slice(1))) % 13)
}

function obey(model: PlanModel, devices: readonly PlanDevice[]): PlanDevice[] {
  const { assignments } = plan(model, devices)
  return devices.map((device, index) => {
    const { range, keep } = assignments[index] ?? { range: null, keep: null }
    return { ...device, range, keep, ready: range !== null }
  })
}

/** The first rounds also compile. */
function cpuOf(work: () => unknown): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  })
  return Math.min(...times)
}
