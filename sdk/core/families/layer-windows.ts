import { CrowdError } from '../errors.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { windowOf } from './family.ts'
import { perLayer } from './per-layer.ts'

/**
 * The tokens that each layer sees, 0 = all: `layer_types` says which layers have the window, else the family's rule.
 * @throws CrowdError model-invalid where a layer has a window and the file has none
 */
export function layerWindows(
  fields: JsonFields,
  layerCount: number,
  isWindowed: (layer: number) => boolean,
): number[] {
  const types = windowedLayers(fields, layerCount)
  const windowed = Array.from(
    { length: layerCount },
    (_, layer) => types?.[layer] ?? isWindowed(layer),
  )
  const window = windowOf(fields)
  if (window === 0 && windowed.includes(true)) {
    throw new CrowdError(
      'model-invalid',
      'config.json: "sliding_window" is null, and there are layers with a window.',
    )
  }
  return windowed.map((has) => (has ? window : 0))
}

/** Files that name layers with a window, and switch windows off. @throws CrowdError model-unsupported */
export function refuseWindows(fields: JsonFields, layerCount: number): void {
  if (windowedLayers(fields, layerCount)?.includes(true) !== true) return
  throw new CrowdError(
    'model-unsupported',
    'config.json: "layer_types" has layers with a window while "use_sliding_window" is false; this is not supported.',
  )
}

/** `layer_types` of newer files: which layers see a window only. null where the file doesn't say. */
function windowedLayers(fields: JsonFields, layerCount: number): boolean[] | null {
  if (!fields.has('layer_types')) return null
  return perLayer(fields, 'layer_types', layerCount).map((type) => {
    if (type === 'sliding_attention') return true
    if (type === 'full_attention') return false
    throw new CrowdError(
      'model-unsupported',
      `config.json: the layer type ${JSON.stringify(type)} is not supported.`,
    )
  })
}
