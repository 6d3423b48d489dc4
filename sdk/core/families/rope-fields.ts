import { CrowdError } from '../errors.ts'
import { isRecord, jsonFields, type JsonFields } from '../model/json-fields.ts'

const OLDER = 'rope_scaling'
const NEWER = 'rope_parameters'
const KINDS = ['full_attention', 'sliding_attention']
const LABEL = 'config.json: rope parameters'

/**
 * Rotary settings: `rope_scaling`, or `rope_parameters` of newer files; where there are both, the older has the last
 * word (transformers). null where the file has neither.
 * @param layerType the kind of layer, in a family whose settings are nested by kind (Gemma 3)
 * @throws CrowdError model-invalid, model-unsupported for nested settings where the family has none, or the reverse
 */
export function ropeFields(config: JsonFields, layerType?: string): JsonFields | null {
  const older = recordOf(config, OLDER)
  const newer = recordOf(config, NEWER)
  if (layerType !== undefined) return nestedFields(older, newer, layerType)
  const given = older !== null && Object.keys(older).length > 0 ? older : newer
  if (given === null) return null
  if (isNested(given)) throw unsupported('nested by kind of layer')
  return jsonFields(given, LABEL)
}

/** Older files scale the rotation of the layers without a window only. */
function nestedFields(
  older: Record<string, unknown> | null,
  newer: Record<string, unknown> | null,
  layerType: string,
): JsonFields | null {
  if (newer !== null && !isNested(newer)) throw unsupported('not nested by kind of layer')
  const nested = newer?.[layerType]
  const own = isRecord(nested) ? nested : { rope_type: 'default' }
  const scaling = layerType === 'full_attention' ? older : null
  return newer === null && scaling === null ? null : jsonFields({ ...own, ...scaling }, LABEL)
}

function isNested(settings: Record<string, unknown>): boolean {
  return KINDS.some((kind) => isRecord(settings[kind]))
}

function recordOf(config: JsonFields, name: string): Record<string, unknown> | null {
  const value = config.value(name)
  if (value === undefined || value === null) return null
  if (isRecord(value)) return value
  throw new CrowdError('model-invalid', `config.json: "${name}" must be an object.`)
}

function unsupported(what: string): CrowdError {
  return new CrowdError(
    'model-unsupported',
    `config.json: "${NEWER}" ${what} is not supported here.`,
  )
}
