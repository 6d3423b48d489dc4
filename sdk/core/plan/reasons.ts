import type { PeerId } from '../ids.ts'
import { describeRange, sameRange, type BlockRange } from '../model/block-range.ts'
import type { PlanDevice } from './device.ts'
import type { Placement } from './fill.ts'
import { longestFrom, type PlanContext } from './fit.ts'
import { formatSize } from './shortage.ts'

/** Placements while a plan is made. */
export type Draft = {
  readonly placed: readonly Placement[]
  /** The stages that make the ring, or what there is of them. */
  readonly chain: readonly Placement[]
  readonly missing: readonly BlockRange[]
  readonly free: readonly PlanDevice[]
  /** Why devices that hold something get something else. */
  readonly moved: 'closed' | 'faster' | null
}

/** Why a device holds what it is given, for people. */
export function whyPlaced(context: PlanContext, draft: Draft, placement: Placement): string {
  const { device, range } = placement
  const words = describeRange(range, context.model.layerCount)
  const inChain = draft.chain.some((stage) => stage.device === device)
  if (sameRange(device.range, range)) return `holds ${words}`
  if (inChain && draft.moved === 'faster') return `makes the ring faster: ${words}`
  const holders = draft.placed.filter((item) => sameRange(item.range, range)).length
  if (holders > 1) return `second copy of the weakest span: ${words}`
  if (inChain && draft.moved === 'closed' && device.range)
    return `moved to close the ring: ${words}`
  if (!inChain && range.end - range.start === context.blockCount) return `answers alone: ${words}`
  return `newcomer fills ${words}`
}

export function whySpare(
  context: PlanContext,
  draft: Draft,
  spare: { readonly device: PlanDevice; readonly keeps: ReadonlyMap<PeerId, BlockRange> },
): string {
  const { device, keeps } = spare
  if (device.pledgeBytes === 0) return 'paused: nothing is pledged'
  if (!device.usable) return 'set aside after a failure'
  const keep = keeps.get(device.peer)
  if (keep) return `spare: keeps ${describeRange(keep, context.model.layerCount)} ready to step in`
  const chain = draft.chain.map((stage) => stage.range)
  const wanted = draft.missing.length > 0 ? draft.missing : chain
  const fitsSome = wanted.some((range) => {
    const bounds = { limit: range.end, layers: context.maxLayers }
    return longestFrom(context, device, range.start, bounds) !== null
  })
  if (fitsSome) return 'spare: no span fits the pledge as a whole'
  const start = wanted[0]?.start ?? 0
  const needed = context.sizes.bytes(device.provider, { start, end: start + 1 })
  return `spare: the pledge is too small, one block takes ${formatSize(needed)}`
}
