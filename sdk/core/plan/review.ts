import type { PeerId } from '../ids.ts'
import type { BlockRange } from '../model/block-range.ts'
import type { Provider } from '../model/provider.ts'
import type { SwarmPlan } from './assign.ts'
import type { PlanDevice } from './device.ts'
import { createPlanContext, type PlanInput } from './fit.ts'
import { describeShortage, shortageOf, type Shortage } from './shortage.ts'

/** A plan as people look at it. */
export type PlanReview = {
  /** Once round the ring when all is loaded, ms; null while blocks are missing. */
  readonly lapMs: number | null
  /** Stages of the ring: hops that every token makes. */
  readonly stages: number
  readonly missing: readonly BlockRange[]
  readonly shortage: Shortage | null
  /** `2.1 GB short: one more device of 4 GB`; empty when nothing is missing. */
  readonly advice: string
  readonly devices: readonly {
    readonly peer: PeerId
    readonly range: BlockRange | null
    readonly keep: BlockRange | null
    /** Of the pledge that this takes: weights and caches; 0 for a spare. */
    readonly bytes: number
    readonly reason: string
  }[]
}

export function reviewPlan(input: PlanInput, plan: SwarmPlan): PlanReview {
  const context = createPlanContext({ ...input, devices: [] })
  const providers = new Map(input.devices.map(({ peer, provider }) => [peer, provider]))
  const shortage = shortageOf(context, {
    missing: plan.missing,
    stages: plan.chain.length,
    provider: commonProvider(input.devices),
  })
  return {
    lapMs: plan.lapMs,
    stages: plan.chain.length,
    missing: plan.missing,
    shortage,
    advice: shortage === null ? '' : describeShortage(shortage),
    devices: plan.assignments.map(({ peer, range, keep, reason }) => {
      const provider = providers.get(peer) ?? 'wasm'
      return {
        peer,
        range,
        keep,
        bytes: range === null ? 0 : context.sizes.bytes(provider, range),
        reason,
      }
    }),
  }
}

/** What the next device most likely computes on: as most of those that are here. */
function commonProvider(devices: readonly PlanDevice[]): Provider {
  const counts = new Map<Provider, number>()
  for (const { provider } of devices) counts.set(provider, (counts.get(provider) ?? 0) + 1)
  const [most] = [...counts].sort(([, a], [, b]) => b - a)
  return most?.[0] ?? 'webgpu'
}
