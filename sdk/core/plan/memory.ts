import type { BlockRange } from '../model/block-range.ts'
import { isQuantized, kvBytesPerToken, type Block } from '../model/manifest.ts'
import type { Provider } from '../model/provider.ts'
import type { PlanModel } from './device.ts'

/** Sessions whose full caches must fit beside the weights; caches grow in steps, so more fit in practice. */
const PLANNED_SESSIONS = 2

/** Bytes that ranges of one model take on a device, by provider. */
export type StageSizes = {
  /** Weights in the provider's format and the KV caches of the planned sessions. */
  bytes(provider: Provider, range: BlockRange): number
}

/** Sums once, so that asking for a range costs nothing. */
export function createStageSizes(model: PlanModel): StageSizes {
  const expanded = prefixSums(model, (block) => block.f32Bytes)
  const packed = isQuantized(model.dtype) ? prefixSums(model, (block) => block.dataBytes) : expanded
  return {
    bytes(provider, range) {
      // WASM has no fast kernel for quantised weights: it holds everything as f32.
      const sums = provider === 'wasm' ? expanded : packed
      return (sums[range.end] ?? Infinity) - (sums[range.start] ?? 0)
    },
  }
}

function prefixSums(model: PlanModel, weightBytes: (block: Block) => number): number[] {
  const cacheBytes = kvBytesPerToken(model) * model.contextLength * PLANNED_SESSIONS
  const sums = [0]
  for (const [index, block] of model.blocks.entries()) {
    const held = weightBytes(block) + (block.kind === 'layer' ? cacheBytes : 0)
    sums.push((sums[index] ?? 0) + held)
  }
  return sums
}
