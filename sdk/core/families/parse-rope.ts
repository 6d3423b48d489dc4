import type { RopeParams, RopeScaling } from '../decoder/rope.ts'
import { CrowdError } from '../errors.ts'
import type { JsonFields } from '../model/json-fields.ts'
import { contextOf, numberOr, ropeFields } from './family.ts'

export type RopeOptions = {
  readonly headSize: number
  /** Tokens that the model will be served with: what grows with the length is fixed for it. */
  readonly contextLength: number
  /** Where the file nests the settings by kind of layer. */
  readonly layerType?: string
  readonly theta?: number
}

/**
 * From config.json: `rope_theta`, `rope_scaling` and `partial_rotary_factor`, or `rope_parameters` of newer
 * files. @throws CrowdError model-invalid, model-unsupported for a scaling that isn't known
 */
export function parseRope(config: JsonFields, options: RopeOptions): RopeParams {
  const { headSize } = options
  const fields = ropeFields(config, options.layerType)
  const holder = (name: string): JsonFields => (fields?.has(name) ? fields : config)
  const theta = options.theta ?? numberOr(holder('rope_theta'), 'rope_theta', 10_000)
  if (theta <= 0) throw new CrowdError('model-invalid', 'config.json: rope_theta must be positive.')
  const partial = holder('partial_rotary_factor')
  const size = Math.trunc(headSize * numberOr(partial, 'partial_rotary_factor', 1))
  if (size < 2 || size > headSize || size % 2 !== 0) {
    throw new CrowdError(
      'model-invalid',
      `config.json: ${size} of ${headSize} values of a head can't be rotated.`,
    )
  }
  if (fields === null) return { theta, size, scaling: { kind: 'none' } }
  const plain = { theta, size }
  const kind = fields.value('rope_type') ?? fields.value('type') ?? 'default'
  if (kind === 'dynamic') return dynamicRope(plain, { config, fields, ...options })
  return { ...plain, scaling: parseScaling(kind, { config, fields, size, ...options }) }
}

type Parts = RopeOptions & { readonly config: JsonFields; readonly fields: JsonFields }

function parseScaling(kind: unknown, parts: Parts & { size: number }): RopeScaling {
  const { fields } = parts
  switch (kind) {
    case 'default':
    case 'none':
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

function originalContext({ config, fields }: Parts): number {
  const name = 'original_max_position_embeddings'
  if (config.has(name)) return config.number(name)
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
    truncate: fields.has('truncate') ? fields.boolean('truncate') : true,
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
  const given = config.has('original_max_position_embeddings')
  const factor = given ? contextOf(config) / original : numberOr(fields, 'factor', 1)
  const derived = factor <= 1 ? 1 : Math.sqrt(1 + Math.log(factor) / Math.log(original))
  return {
    kind: 'divisors',
    divisors,
    attentionFactor: numberOr(fields, 'attention_factor', derived),
  }
}

/** NTK-aware: a longer context raises theta. Up to the model's own context nothing changes. */
function dynamicRope(plain: { theta: number; size: number }, parts: Parts): RopeParams {
  const { theta, size } = plain
  const original = originalContext(parts)
  const factor = parts.fields.number('factor')
  const ratio = Math.max(1, (factor * parts.contextLength) / original - (factor - 1))
  return { theta: theta * ratio ** (size / (size - 2)), size, scaling: { kind: 'none' } }
}
