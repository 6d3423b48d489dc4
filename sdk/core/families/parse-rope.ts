import type { RopeParams, RopeScaling } from '../decoder/rope.ts'
import { CrowdError } from '../errors.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { contextOf, flag, numberOr, requireValue } from './family.ts'
import { ropeFields } from './rope-fields.ts'

export type RopeOptions = {
  readonly headSize: number
  /** Tokens that the model will be served with: what grows with the length is fixed for it. */
  readonly contextLength: number
  /** Where the file nests the settings by kind of layer. */
  readonly layerType?: string
  /** The field that the file keeps theta in, unless it's among the nested settings. Default `rope_theta`. */
  readonly thetaName?: string
  /** Whether a share of each head may stay as it is: `partial_rotary_factor`. */
  readonly partial?: boolean
}

/**
 * From config.json: `rope_theta`, `rope_scaling` and `partial_rotary_factor`, or `rope_parameters` of newer
 * files. @throws CrowdError model-invalid, model-unsupported for a scaling that isn't known
 */
export function parseRope(config: JsonFields, options: RopeOptions): RopeParams {
  const fields = ropeFields(config, options.layerType)
  const theta = fields?.has('rope_theta')
    ? fields.number('rope_theta')
    : config.number(options.thetaName ?? 'rope_theta')
  if (theta <= 0) throw new CrowdError('model-invalid', 'config.json: rope_theta must be positive.')
  const size = rotatedSize(config, fields, options)
  if (fields === null) return { theta, size, scaling: { kind: 'none' } }
  const kind = fields.value('rope_type') ?? fields.value('type') ?? 'default'
  return { theta, size, scaling: parseScaling(kind, { config, fields, size, ...options }) }
}

/** Values of a head that are rotated. */
function rotatedSize(
  config: JsonFields,
  fields: JsonFields | null,
  { headSize, partial = false }: RopeOptions,
): number {
  const name = 'partial_rotary_factor'
  const holder = fields?.has(name) ? fields : config
  if (!partial) requireValue(holder, name, [1])
  const size = Math.trunc(headSize * numberOr(holder, name, 1))
  if (size < 2 || size > headSize || size % 2 !== 0) {
    throw new CrowdError(
      'model-invalid',
      `config.json: ${size} of ${headSize} values of a head can't be rotated.`,
    )
  }
  return size
}

type Parts = RopeOptions & { readonly config: JsonFields; readonly fields: JsonFields }

function parseScaling(kind: unknown, parts: Parts & { size: number }): RopeScaling {
  const { fields } = parts
  switch (kind) {
    case 'default':
    case 'none':
      return { kind: 'none' }
    case 'dynamic':
      // Raises theta beyond the model's own context, which is never exceeded here.
      fields.number('factor')
      return { kind: 'none' }
    case 'linear':
      return { kind, factor: fields.number('factor') }
    case 'llama3':
      return {
        kind,
        factor: fields.number('factor'),
        lowFrequencyFactor: fields.number('low_freq_factor'),
        highFrequencyFactor: fields.number('high_freq_factor'),
        originalContext: originalContext(parts),
      }
    case 'yarn':
      return yarn(parts)
    case 'longrope':
    case 'su':
      return longRope(parts)
    default: {
      const name = JSON.stringify(kind)
      throw new CrowdError(
        'model-unsupported',
        `config.json: rope scaling ${name} is not supported.`,
      )
    }
  }
}

function originalContext({ config, fields, layerType }: Parts): number {
  const name = 'original_max_position_embeddings'
  if (layerType === undefined && config.has(name)) return config.number(name)
  return fields.has(name) ? fields.number(name) : contextOf(config)
}

function yarn(parts: Parts): RopeScaling {
  const { config, fields } = parts
  const original = originalContext(parts)
  const factor = fields.has('factor') ? fields.number('factor') : contextOf(config) / original
  const scaleOf = (by: number): number => (factor <= 1 ? 1 : 0.1 * by * Math.log(factor) + 1)
  const mscale = numberOr(fields, 'mscale', 0)
  const all = numberOr(fields, 'mscale_all_dim', 0)
  const derived = mscale !== 0 && all !== 0 ? scaleOf(mscale) / scaleOf(all) : scaleOf(1)
  return {
    kind: 'yarn',
    factor,
    originalContext: original,
    betaFast: numberOr(fields, 'beta_fast', 32),
    betaSlow: numberOr(fields, 'beta_slow', 1),
    truncate: fields.value('truncate') === undefined || flag(fields, 'truncate'),
    attentionFactor: numberOr(fields, 'attention_factor', derived),
  }
}

/** Short divisors up to the context that the model was made for, long ones for all positions beyond. */
function longRope(parts: Parts & { size: number }): RopeScaling {
  const { config, fields, contextLength, size } = parts
  const original = originalContext(parts)
  const name = contextLength > original ? 'long_factor' : 'short_factor'
  const divisors = fields.array(name).map((value) => {
    if (typeof value === 'number' && value > 0) return value
    throw new CrowdError('model-invalid', `config.json: "${name}" holds ${JSON.stringify(value)}.`)
  })
  if (divisors.length !== size / 2) {
    throw new CrowdError(
      'model-invalid',
      `config.json: "${name}" has ${divisors.length} values, not ${size / 2}.`,
    )
  }
  const factor = fields.has('factor') ? fields.number('factor') : contextOf(config) / original
  const derived = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original))
  return {
    kind: 'divisors',
    divisors,
    attentionFactor: numberOr(fields, 'attention_factor', derived),
  }
}
