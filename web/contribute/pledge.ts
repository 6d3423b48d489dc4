/** Memory that a device lends, in MB (1 MB = 1,000,000 bytes), weights and caches together. */
export const BYTES_PER_MB = 1_000_000
export const PLEDGE_MIN_MB = 1
export const PLEDGE_MAX_MB = 65_536

/** Stops of the slider: 2 MB steps where small models live, then wider and wider. */
export const PLEDGE_STOPS_MB: readonly number[] = [
  2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536,
  2_048, 3_072, 4_096, 6_144, 8_192, 12_288, 16_384,
]

/**
 * An eighth of the device's memory, between 64 MB and 1 GB.
 * @param deviceMemoryGb `navigator.deviceMemory`: Chromium only, rounded and at most 8 (Device Memory API)
 */
export function defaultPledgeMb(deviceMemoryGb: number | undefined): number {
  if (deviceMemoryGb === undefined) return 256
  return Math.min(Math.max(Math.round(deviceMemoryGb * 128), 64), 1_024)
}

/** Brings what a person typed or an address says into the limits; nonsense becomes `otherwise`. */
export function cleanPledgeMb(value: number | null | undefined, otherwise: number): number {
  if (value === null || value === undefined || !Number.isFinite(value)) return otherwise
  return Math.min(Math.max(value, PLEDGE_MIN_MB), PLEDGE_MAX_MB)
}

/** The slider's stop nearest to a pledge. */
export function nearestStop(pledgeMb: number): number {
  let best = 0
  for (const [index, stop] of PLEDGE_STOPS_MB.entries()) {
    const known = PLEDGE_STOPS_MB[best] ?? stop
    if (Math.abs(stop - pledgeMb) < Math.abs(known - pledgeMb)) best = index
  }
  return best
}
