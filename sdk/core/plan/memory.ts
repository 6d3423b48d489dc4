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
  /** What all blocks before each one take; the last entry is the whole model. */
  sums(provider: Provider): readonly number[]
}

/** Sums once, so that asking for a range costs nothing. */
export function createStageSizes(model: PlanModel): StageSizes {
  const known = new Map<Provider, readonly number[]>()
  const sumsOf = (provider: Provider): readonly number[] => {
    const found = known.get(provider)
    if (found) return found
    const sums = prefixSums(model, provider)
    known.set(provider, sums)
    return sums
  }
  return {
    bytes(provider, range) {
      const sums = sumsOf(provider)
      return (sums[range.end] ?? Infinity) - (sums[range.start] ?? 0)
    },
    sums: sumsOf,
  }
}

/** Weights of a block in the provider's format. */
export function weightBytes(model: PlanModel, provider: Provider, block: Block): number {
  return isExpanded(model, provider) ? block.f32Bytes : block.dataBytes
}

/** Which products a provider has no fast kernel for is decided in lower.ts. */
function isExpanded({ dtype }: PlanModel, provider: Provider): boolean {
  return !isQuantized(dtype) || provider === 'wasm' || (provider === 'cpu' && dtype === 'q8')
}

function prefixSums(model: PlanModel, provider: Provider): number[] {
  const cacheBytes = kvBytesPerToken(model) * model.contextLength * PLANNED_SESSIONS
  const sums = [0]
  for (const [index, block] of model.blocks.entries()) {
    const held = weightBytes(model, provider, block) + (block.kind === 'layer' ? cacheBytes : 0)
    sums.push((sums[index] ?? 0) + held)
  }
  return sums
}
