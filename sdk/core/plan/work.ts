import type { BlockRange } from '../model/block-range.ts'
import type { Provider } from '../model/provider.ts'
import { layersIn, type PlanModel } from './device.ts'
import { weightBytes } from './memory.ts'

/** How much there is to compute, in decoder layers: one unit for all ranges, so that a speed outlives its range. */
export type Work = {
  /** What a decode step through a range is worth. The head counts by its weights, the embedding as nothing. */
  layers(provider: Provider, range: BlockRange): number
  /** ms per layer where nothing was measured: the layer's bytes over what such devices read, and a fixed part. */
  guessMs(provider: Provider): number
}

/** Bytes of weights that a device reads in a ms, and what a layer costs besides, ms. Rough: only used unmeasured. */
const GUESSES: Readonly<Record<Provider, { readonly rate: number; readonly fixed: number }>> = {
  cuda: { rate: 200e6, fixed: 0.1 },
  webgpu: { rate: 40e6, fixed: 0.2 },
  cpu: { rate: 8e6, fixed: 0.3 },
  wasm: { rate: 6e6, fixed: 0.4 },
}

/** A step reads every weight once, so time goes by bytes. */
export function createWork(model: PlanModel): Work {
  const { layerCount, blocks } = model
  const layerBytes = (provider: Provider): number => {
    const layers = blocks.slice(1, layerCount + 1)
    const sum = layers.reduce((total, block) => total + weightBytes(model, provider, block), 0)
    return sum / Math.max(1, layers.length)
  }
  const perProvider = new Map<Provider, { readonly head: number; readonly guess: number }>()
  const of = (provider: Provider): { readonly head: number; readonly guess: number } => {
    const known = perProvider.get(provider)
    if (known) return known
    const bytes = layerBytes(provider)
    const block = blocks.at(-1)
    const head = block && bytes > 0 ? weightBytes(model, provider, block) / bytes : 0
    const { rate, fixed } = GUESSES[provider]
    const made = { head, guess: fixed + bytes / rate }
    perProvider.set(provider, made)
    return made
  }
  return {
    layers: (provider, range) =>
      layersIn(range, layerCount) + (range.end === blocks.length ? of(provider).head : 0),
    guessMs: (provider) => of(provider).guess,
  }
}
