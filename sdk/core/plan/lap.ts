import type { BlockRange } from '../model/block-range.ts'
import type { PlanDevice } from './device.ts'
import type { Placement } from './fill.ts'
import type { PlanContext } from './fit.ts'

/** Browsers slow hidden tabs down two to three times, and may stop them. */
const HIDDEN_FACTOR = 3
const HIDDEN_MS = 20

/** What a step costs where the tab may be hidden: for choosing, not for telling. ms */
export function withHidden(ms: number, hidden: boolean): number {
  return hidden ? ms * HIDDEN_FACTOR + HIDDEN_MS : ms
}

/** One decode step of a device through a range, ms. */
export function stepMs(context: PlanContext, device: PlanDevice, range: BlockRange): number {
  const ms = context.msPerLayer(device) * context.work.layers(device.provider, range)
  return withHidden(ms, device.hidden)
}

/** Once round a chain: its steps and its hops, the one back to the first stage included. ms */
export function lapMs(context: PlanContext, chain: readonly Placement[]): number {
  let ms = 0
  for (const [index, { device, range }] of chain.entries()) {
    ms += stepMs(context, device, range)
    const next = chain[(index + 1) % chain.length]
    if (next && next.device !== device) ms += context.hopMs(device, next.device)
  }
  return ms
}
