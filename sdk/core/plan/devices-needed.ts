import { createStageSizes } from './memory.ts'
import type { PlanModel } from './device.ts'
import type { Provider } from '../model/provider.ts'

/**
 * How many equal devices hold a model, by the planner's own rule of memory: weights in the provider's format and
 * the caches of full contexts. null when one of them can't hold even one block.
 */
export function devicesNeeded(
  model: PlanModel,
  device: { readonly bytes: number; readonly provider: Provider },
): number | null {
  const sizes = createStageSizes(model)
  const fits = (start: number, end: number): boolean =>
    sizes.bytes(device.provider, { start, end }) <= device.bytes
  let devices = 0
  for (let at = 0; at < model.blocks.length; devices++) {
    const start = at
    // Equal devices: the longest run at each border is the best that can be had.
    while (at < model.blocks.length && fits(start, at + 1)) at += 1
    if (at === start) return null
  }
  return devices
}
