import { blockData } from '../../sdk/core/model/make-weight.ts'
import type { PlacedWeight } from '../../sdk/core/model/layout-weights.ts'
import type { TensorSource } from '../../sdk/core/model/tensor-source.ts'

/** Data of blocks, as `blockData` makes it, but each matrix is read and quantised once for all who ask. */
export type MadeWeights = {
  readonly collect: (
    weights: readonly PlacedWeight[],
    length: number,
  ) => Promise<Uint8Array<ArrayBuffer>>
}

export function createMadeWeights(source: TensorSource): MadeWeights {
  const made = new Map<string, Uint8Array<ArrayBuffer>>()
  const make = async (weight: PlacedWeight): Promise<Uint8Array<ArrayBuffer>> => {
    const key = JSON.stringify(weight.recipe)
    const known = made.get(key)
    if (known) return known
    const bytes = new Uint8Array(weight.length)
    let at = 0
    for await (const run of blockData([{ ...weight, offset: 0 }], source)) {
      bytes.set(run, at)
      at += run.length
    }
    made.set(key, bytes)
    return bytes
  }
  return {
    collect: async (weights, length) => {
      const data = new Uint8Array(length)
      for (const weight of weights) data.set(await make(weight), weight.offset)
      return data
    },
  }
}
