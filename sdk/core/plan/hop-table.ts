import type { PlanDevice } from './device.ts'
import type { HopCost } from './route.ts'

/** Cost of a hop where nothing was measured, ms. An open link that was measured is usually cheaper. */
export const UNKNOWN_HOP_MS = 6

/** Asks for the cost of each pair once: a plan looks at the same pairs again and again. */
export function createHopTable(
  devices: readonly PlanDevice[],
  hopMs: HopCost,
): (from: PlanDevice, to: PlanDevice) => number {
  const indexes = new Map(devices.map((device, index) => [device, index]))
  const known = new Float64Array(devices.length ** 2).fill(NaN)
  return (from, to) => {
    const at = (indexes.get(from) ?? 0) * devices.length + (indexes.get(to) ?? 0)
    const found = known[at] ?? NaN
    if (!Number.isNaN(found)) return found
    const ms = hopMs(from.peer, to.peer)
    known[at] = ms
    return ms
  }
}
