import type { BlockRange } from '../model/block-range.ts'
import type { Provider } from '../model/provider.ts'
import { layersIn, type PlanModel } from './device.ts'
import { createPlanContext } from './fit.ts'
import { helpersFor } from './shortage.ts'

export type AdviceInput = {
  readonly model: PlanModel
  readonly minStages: number
  /** Blocks without a ready device. */
  readonly missing: readonly BlockRange[]
  /** Blocks that no device is even given; part of `missing`. */
  readonly unassigned: readonly BlockRange[]
  /** Stages that exist or are on the way. */
  readonly stages: number
  /** What the devices here pledge; empty when nobody came yet. */
  readonly pledges: readonly { readonly bytes: number; readonly provider: Provider }[]
}

/** What a tab pledges unless its owner says otherwise; only used before the first device came. */
const TYPICAL_PLEDGE = { bytes: 512 * 1024 * 1024, provider: 'wasm' } as const

/** One sentence for people: what is missing and what to do. Empty when every block is ready. */
export function advise(input: AdviceInput): string {
  if (input.missing.length === 0) return ''
  const context = createPlanContext({ ...input, devices: [] })
  const what = describeMissing(input.model, input.missing)
  if (input.unassigned.length === 0) return `${what} on the way: a device is loading them`
  const typical = typicalPledge(input.pledges)
  const devices = helpersFor(context, {
    gaps: input.unassigned,
    stages: input.stages,
    lent: typical,
  })
  if (devices === null) {
    const start = input.unassigned[0]?.start ?? 0
    const bytes = context.sizes.bytes(typical.provider, { start, end: start + 1 })
    const pledge = `${Math.ceil(bytes / 1e6)} MB`
    return `${what} missing: open a tab that pledges at least ${pledge}`
  }
  if (devices === 1) return `${what} missing: open one more tab`
  return `${what} missing: open ${devices} more tabs`
}

/** `2 of 6 layers`, or the names of the ends when all layers are there. */
function describeMissing(model: PlanModel, missing: readonly BlockRange[]): string {
  const layers = missing.reduce((sum, range) => sum + layersIn(range, model.layerCount), 0)
  if (layers > 0) return `${layers} of ${model.layerCount} layers`
  const head = model.layerCount + 1
  const ends = [
    ...(missing.some((range) => range.start === 0) ? ['embedding'] : []),
    ...(missing.some((range) => range.end === head + 1) ? ['head'] : []),
  ]
  return ends.join(' and ')
}

/** The median pledge: half of those who come bring at least this much. */
function typicalPledge(pledges: AdviceInput['pledges']): {
  readonly bytes: number
  readonly provider: Provider
} {
  const given = pledges.filter((pledge) => pledge.bytes > 0)
  const sorted = [...given].sort((a, b) => a.bytes - b.bytes)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? TYPICAL_PLEDGE
}
