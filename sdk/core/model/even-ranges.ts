import { CrowdError } from '../errors.ts'
import type { BlockRange } from './block-range.ts'

/**
 * Cuts a model into `stages` ranges whose layer counts differ by one at most; the embedding goes with the
 * first, the head with the last. `evenRanges(6, 3)` = [0,3) [3,5) [5,8).
 * @throws CrowdError bad-option when there are more stages than layers
 */
export function evenRanges(layerCount: number, stages: number): BlockRange[] {
  if (!Number.isInteger(stages) || stages < 1 || stages > layerCount) {
    throw new CrowdError(
      'bad-option',
      `this model has ${layerCount} layers: it can be cut into 1 to ${layerCount} stages, not ${stages}`,
    )
  }
  return Array.from({ length: stages }, (_, stage) => {
    // Layers are blocks 1..layerCount.
    const first = 1 + Math.floor((stage * layerCount) / stages)
    const next = 1 + Math.floor(((stage + 1) * layerCount) / stages)
    return { start: stage === 0 ? 0 : first, end: stage === stages - 1 ? layerCount + 2 : next }
  })
}
