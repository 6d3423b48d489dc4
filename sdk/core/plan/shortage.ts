import type { BlockRange } from '../model/block-range.ts'
import type { Provider } from '../model/provider.ts'
import { imaginedDevice, layersIn } from './device.ts'
import { layerCap, longestFrom, type PlanContext } from './fit.ts'

/** What a swarm lacks to cover the model, and what would do. */
export type Shortage = {
  /** Weights and caches of the blocks that nobody can be given. */
  readonly bytes: number
  /** As few devices as close the gaps, and the smallest usual size with which so few do. */
  readonly devices: number
  readonly deviceBytes: number
}

export type Lent = { readonly bytes: number; readonly provider: Provider }

/** Sizes that devices are sold and pledges are given in, bytes. */
const USUAL_BYTES: readonly number[] = [
  ...[16, 32, 64, 128, 256, 512].map((megabytes) => megabytes * 1e6),
  ...[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1_024].map(
    (gb) => gb * 1e9,
  ),
]

/** null when nothing is missing. `stages`: those that the chain has. */
export function shortageOf(
  context: PlanContext,
  input: {
    readonly missing: readonly BlockRange[]
    readonly stages: number
    readonly provider: Provider
  },
): Shortage | null {
  const { missing, stages, provider } = input
  if (missing.length === 0) return null
  const bytes = missing.reduce((sum, gap) => sum + context.sizes.bytes(provider, gap), 0)
  const needed = (deviceBytes: number): number | null =>
    helpersFor(context, { gaps: missing, stages, lent: { bytes: deviceBytes, provider } })
  // Not 1 where stages must be more, or the gaps lie apart.
  const devices = needed(Infinity) ?? 1
  const deviceBytes = USUAL_BYTES.find((size) => needed(size) === devices)
  return { bytes, devices, deviceBytes: deviceBytes ?? bytes }
}

/** How many equal devices fill the gaps; null when one of them can't hold even one block. */
export function helpersFor(
  context: PlanContext,
  input: { readonly gaps: readonly BlockRange[]; readonly stages: number; readonly lent: Lent },
): number | null {
  const { bytes, provider } = input.lent
  const helper = imaginedDevice('helper', { pledgeBytes: bytes, provider })
  const { layerCount } = context.model
  let layersLeft = input.gaps.reduce((sum, gap) => sum + layersIn(gap, layerCount), 0)
  let helpers = 0
  for (const gap of input.gaps) {
    for (let at = gap.start; at < gap.end; helpers++) {
      const layers = layerCap(context, layersLeft, input.stages + helpers)
      const range = longestFrom(context, helper, at, { limit: gap.end, layers })
      if (range === null) return null
      layersLeft -= layersIn(range, layerCount)
      at = range.end
    }
  }
  return helpers
}

/** `2.1 GB short: one more device of 4 GB` */
export function describeShortage({ bytes, devices, deviceBytes }: Shortage): string {
  const what = devices === 1 ? 'one more device' : `${devices} more devices`
  return `${formatSize(bytes)} short: ${what} of ${formatSize(deviceBytes)}`
}

/** Decimal, at most one digit after the point. */
export function formatSize(bytes: number): string {
  if (bytes < 1e6) return `${Math.ceil(bytes / 1e3)} kB`
  if (bytes < 1e9) return `${Math.ceil(bytes / 1e6)} MB`
  const gigabytes = Math.ceil(bytes / 1e8) / 10
  return `${gigabytes} GB`
}
