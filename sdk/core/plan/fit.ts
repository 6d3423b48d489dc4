import type { BlockRange } from '../model/block-range.ts'
import { blockPieces } from '../model/manifest.ts'
import { layersIn, type PlanDevice, type PlanModel } from './device.ts'
import { createHopTable, UNKNOWN_HOP_MS } from './hop-table.ts'
import { createStageSizes, type StageSizes } from './memory.ts'
import type { HopCost } from './route.ts'
import { createWork, type Work } from './work.ts'

/** Everything one planning run shares. */
export type PlanContext = {
  readonly model: PlanModel
  readonly sizes: StageSizes
  readonly work: Work
  readonly blockCount: number
  /** At least so many stages in a chain, where there are layers enough. */
  readonly minStages: number
  /** No stage holds more layers than this. */
  readonly maxLayers: number
  /** Measured, or guessed from those that were. */
  msPerLayer(device: PlanDevice): number
  hopMs(from: PlanDevice, to: PlanDevice): number
  /** Bytes of a block's pieces that a device has stored already. */
  cachedBytes(device: PlanDevice, range: BlockRange): number
  /** Whether a device has every piece of a block stored. */
  stores(device: PlanDevice, block: number): boolean
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
  const pieces = model.blocks.map((block) => blockPieces(block))
  const perDevice = new Map<PlanDevice, number[]>()
  const cachedSums = (device: PlanDevice): number[] => {
    const known = perDevice.get(device)
    if (known) return known
    const sums = [0]
    for (const [index, list] of pieces.entries()) {
      const held = list.filter((piece) => device.cached.has(piece.sha256))
      sums.push(held.reduce((sum, piece) => sum + piece.bytes, sums[index] ?? 0))
    }
    perDevice.set(device, sums)
    return sums
  }
  return {
    model,
    sizes: createStageSizes(model),
    work,
    msPerLayer: (device) => device.msPerLayer ?? work.guessMs(device.provider) * scale,
    hopMs: createHopTable(devices, hopMs),
    blockCount: model.blocks.length,
    minStages: stages,
    maxLayers: Math.ceil(model.layerCount / stages),
    cachedBytes(device, range) {
      if (device.cached.size === 0) return 0
      const sums = cachedSums(device)
      return (sums[range.end] ?? 0) - (sums[range.start] ?? 0)
    },
    stores: (device, block) =>
      device.cached.size > 0 &&
      (pieces[block] ?? []).every((piece) => device.cached.has(piece.sha256)),
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
  let end = start
  while (end < bounds.limit) {
    const longer = { start, end: end + 1 }
    if (layersIn(longer, context.model.layerCount) > bounds.layers) break
    if (!fits(context, device, longer)) break
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
