import { CrowdError } from '../errors.ts'
import { isRecord, jsonFields, type JsonFields } from './json-fields.ts'

/** How positions become angles. */
export type RopeParams = {
  readonly theta: number
  readonly scaling:
    | { readonly kind: 'none' }
    | { readonly kind: 'linear'; readonly factor: number }
    | {
        readonly kind: 'llama3'
        readonly factor: number
        readonly lowFrequencyFactor: number
        readonly highFrequencyFactor: number
        readonly originalContext: number
      }
}

/**
 * From config.json: `rope_theta` and `rope_scaling`, or `rope_parameters` of newer files.
 * @throws CrowdError model-unsupported for a scaling that isn't none, linear or llama3
 */
export function parseRope(config: JsonFields): RopeParams {
  const nested = config.value('rope_parameters') ?? config.value('rope_scaling')
  const fields = isRecord(nested) ? jsonFields(nested, 'config.json: rope parameters') : null
  const thetaFields = fields?.has('rope_theta') ? fields : config
  const theta = thetaFields.has('rope_theta') ? thetaFields.number('rope_theta') : 10_000
  if (theta <= 0) throw new CrowdError('model-invalid', 'config.json: rope_theta must be positive.')
  return { theta, scaling: fields === null ? { kind: 'none' } : parseScaling(fields) }
}

function parseScaling(fields: JsonFields): RopeParams['scaling'] {
  const kind = fields.value('rope_type') ?? fields.value('type') ?? 'default'
  if (kind === 'default' || kind === 'none') return { kind: 'none' }
  if (kind === 'linear') return { kind, factor: fields.number('factor') }
  if (kind === 'llama3') {
    return {
      kind,
      factor: fields.number('factor'),
      lowFrequencyFactor: fields.number('low_freq_factor'),
      highFrequencyFactor: fields.number('high_freq_factor'),
      originalContext: fields.number('original_max_position_embeddings'),
    }
  }
  const name = JSON.stringify(kind)
  throw new CrowdError('model-unsupported', `config.json: rope scaling ${name} is not supported.`)
}

/** Radians per position, f32 [headSize / 2]. Llama 3's scaling follows the paper arXiv 2407.21783 and its code. */
export function inverseFrequencies(rope: RopeParams, headSize: number): Float32Array<ArrayBuffer> {
  const { scaling } = rope
  return Float32Array.from({ length: headSize / 2 }, (_, i) => {
    const plain = Math.fround(1 / rope.theta ** ((2 * i) / headSize))
    if (scaling.kind === 'none') return plain
    if (scaling.kind === 'linear') return plain / scaling.factor
    const turns = (scaling.originalContext * plain) / (2 * Math.PI)
    const { lowFrequencyFactor: low, highFrequencyFactor: high } = scaling
    const blend = Math.min(1, Math.max(0, (turns - low) / (high - low)))
    return (1 - blend) * (plain / scaling.factor) + blend * plain
  })
}
