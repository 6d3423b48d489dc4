import type { Block } from '../sdk/core/model/manifest.ts'
import type { Provider } from '../sdk/core/model/provider.ts'
import { planSwarm } from '../sdk/core/plan/assign.ts'
import { imaginedDevice, type PlanModel } from '../sdk/core/plan/device.ts'
import { bytesPerWeight } from '../sdk/core/plan/dtype-bytes.ts'
import type { CatalogueEntry } from './catalogue.ts'

/** What a device lends. */
export type LentDevice = { readonly bytes: number; readonly provider: Provider }

export type Recommendation = {
  readonly entry: CatalogueEntry
  readonly dtype: 'q4' | 'q8' | 'f16'
  /** Stages of the ring: hops that every token makes. */
  readonly stages: number
  readonly contextLength: number
}

/** The best first: less rounded weights are better, where they fit. */
const DTYPES = ['f16', 'q8', 'q4'] as const

/**
 * The models of a catalogue that the devices can hold, the largest first, each in the least rounded dtype that fits.
 * Judged by the planner itself, on sizes that follow from the catalogue's numbers.
 */
export function recommend(
  entries: readonly CatalogueEntry[],
  devices: readonly LentDevice[],
  contextLength: number,
): Recommendation[] {
  return entries
    .flatMap((entry) => bestFit(entry, devices, Math.min(contextLength, entry.context)))
    .sort((a, b) => b.entry.parameters - a.entry.parameters)
}

function bestFit(
  entry: CatalogueEntry,
  devices: readonly LentDevice[],
  contextLength: number,
): Recommendation[] {
  for (const dtype of DTYPES) {
    const model = planModelOf(entry, dtype, contextLength)
    const imagined = devices.map(({ bytes, provider }, index) =>
      imaginedDevice(`device-${index}`, { pledgeBytes: bytes, provider }),
    )
    const plan = planSwarm({ model, devices: imagined, minStages: 1 })
    if (plan.missing.length > 0) continue
    return [{ entry, dtype, contextLength, stages: plan.chain.length }]
  }
  return []
}

/** Layers are taken as equal: what embedding and head leave of the parameters, shared evenly. */
export function planModelOf(
  entry: CatalogueEntry,
  dtype: Recommendation['dtype'],
  contextLength: number,
): PlanModel {
  const { layers, hiddenSize, vocabSize, tied, parameters } = entry
  const table = hiddenSize * vocabSize
  const layer = (parameters - (tied ? table : 2 * table)) / layers
  const block = (kind: Block['kind'], weights: number): Block => ({
    kind,
    dataBytes: Math.round(weights * bytesPerWeight(dtype, kind)),
    f32Bytes: weights * 4,
    graph: null,
    data: [],
  })
  return {
    dtype,
    layerCount: layers,
    kvHeadCount: entry.kvHeads,
    headSize: entry.headSize,
    contextLength,
    blocks: [
      block('embedding', table),
      ...Array.from({ length: layers }, () => block('layer', layer)),
      block('head', table),
    ],
  }
}
