import type { PeerId } from '../ids.ts'
import type { BlockRange } from '../model/block-range.ts'
import type { Manifest } from '../model/manifest.ts'
import type { Provider } from '../model/provider.ts'

/** What the planner must know of a model. */
export type PlanModel = Pick<
  Manifest,
  'blocks' | 'layerCount' | 'dtype' | 'kvHeadCount' | 'headSize' | 'contextLength'
>

/** A device as the planner sees it. */
export type PlanDevice = {
  readonly peer: PeerId
  /** Weights in the provider's format plus KV caches, bytes. 0 = paused. */
  readonly pledgeBytes: number
  readonly provider: Provider
  /** Measured, ms per decoder layer and step, whatever the range; null before the first measurement. */
  readonly msPerLayer: number | null
  /** The tab is in the background, where browsers slow it down. */
  readonly hidden: boolean
  /** False for a device that failed and was set aside. */
  readonly usable: boolean
  /** Hashes of the pieces stored on the device. */
  readonly cached: ReadonlySet<string>
  /** What it holds now, ready or on the way. */
  readonly range: BlockRange | null
  readonly ready: boolean
  /** As a spare: what it keeps stored, there or on the way. */
  readonly keep: BlockRange | null
}

/** A device of which only this is known: it holds nothing and was never measured. A stand-in, so its id needs no server. */
export function imaginedDevice(
  id: string,
  known: Pick<PlanDevice, 'pledgeBytes' | 'provider'> & Partial<PlanDevice>,
): PlanDevice {
  return {
    peer: id as PeerId,
    msPerLayer: null,
    hidden: false,
    usable: true,
    cached: new Set(),
    range: null,
    ready: false,
    keep: null,
    ...known,
  }
}

/** Decoder layers of a range; the embedding and the head are no layers. */
export function layersIn(range: BlockRange, layerCount: number): number {
  return Math.max(0, Math.min(range.end, layerCount + 1) - Math.max(range.start, 1))
}
