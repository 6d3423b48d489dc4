import { CrowdError } from '../errors.ts'
import type { JsonFields } from '../model/json-fields.ts'

/** A list of config.json with one entry for each layer. @throws CrowdError model-invalid */
export function perLayer(fields: JsonFields, name: string, layerCount: number): readonly unknown[] {
  const list = fields.array(name)
  if (list.length === layerCount) return list
  throw new CrowdError(
    'model-invalid',
    `config.json: "${name}" names ${list.length} layers, not ${layerCount}.`,
  )
}
