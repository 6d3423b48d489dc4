import type { BlockRange } from '../model/block-range.ts'
import { layersIn, type PlanDevice, type PlanModel } from './device.ts'
import { createHopTable, UNKNOWN_HOP_MS } from './hop-table.ts'
import { createStageSizes, type StageSizes } from './memory.ts'
import type { HopCost } from './route.ts'
import { createStoredPieces, type StoredPieces } from './stored-pieces.ts'
import { createWork, type Work } from './work.ts'

/** Everything one planning run shares. */
export type PlanContext = {
  readonly model: PlanModel
  readonly sizes: StageSizes
  readonly work: Work
  readonly stored: StoredPieces
  readonly blockCount: number
  /** At least so many stages in a chain, where there are layers enough. */
  readonly minStages: number
  /** No stage holds more layers than this. */
  readonly maxLayers: number
  /** Measured, or guessed from those that were. */
  msPerLayer(device: PlanDevice): number
  hopMs(from: PlanDevice, to: PlanDevice): number
}

export type PlanInput = {
  readonly model: PlanModel
  readonly devices: readonly PlanDevice[]
  readonly minStages: number
  /** Default: the same for every pair. */
  readonly hopMs?: HopCost
}

export function createPlanContext(input: PlanInput): PlanContext {
  const { model, devices, minStages, hopMs = () => UNKNOWN_HOP_MS } = input
  const work = createWork(model)
  const scale = speedScale(work, devices)
  const stages = Math.max(1, Math.min(minStages, model.layerCount))
  return {
    model,
    sizes: createStageSizes(model),
    work,
    stored: createStoredPieces(model),
    msPerLayer: (device) => device.msPerLayer ?? work.guessMs(device.provider) * scale,
    hopMs: createHopTable(devices, hopMs),
    blockCount: model.blocks.length,
    minStages: stages,
    maxLayers: Math.ceil(model.layerCount / stages),
  }
}

export function fits(context: PlanContext, device: PlanDevice, range: BlockRange): boolean {
  return (
    context.sizes.bytes(device.provider, range) <= device.pledgeBytes &&
    layersIn(range, context.model.layerCount) <= context.maxLayers
  )
}

/**
 * Layers that the next stage may take when `layersLeft` still have no stage and `stages` exist: what is
 * left is shared evenly by the stages that the chain must still get. 6 layers in 4 stages: 2, 2, 1, 1.
 */
export function layerCap(context: PlanContext, layersLeft: number, stages: number): number {
  const stagesLeft = Math.max(1, context.minStages - stages)
  return Math.min(context.maxLayers, Math.max(1, Math.ceil(layersLeft / stagesLeft)))
}

/** The longest range from `start` that the device can hold, not past `limit`; null when not even one block. */
export function longestFrom(
  context: PlanContext,
  device: PlanDevice,
  start: number,
  bounds: { readonly limit: number; readonly layers: number },
): BlockRange | null {
  const { layerCount } = context.model
  const layers = Math.min(bounds.layers, context.maxLayers)
  const sums = context.sizes.sums(device.provider)
  const most = (sums[start] ?? 0) + device.pledgeBytes
  let end = start
  while (end < bounds.limit && (sums[end + 1] ?? Infinity) <= most) {
    // Blocks 1 to `layerCount` are the layers.
    if (Math.min(end + 1, layerCount + 1) - Math.max(start, 1) > layers) break
    end += 1
  }
  return end === start ? null : { start, end }
}

/** How much slower than the guess the devices are that were measured: their median; 1 before the first. */
function speedScale(work: Work, devices: readonly PlanDevice[]): number {
  const ratios = devices.flatMap(({ msPerLayer, provider }) =>
    msPerLayer === null ? [] : [msPerLayer / work.guessMs(provider)],
  )
  return ratios.sort((a, b) => a - b)[Math.floor((ratios.length - 1) / 2)] ?? 1
}
