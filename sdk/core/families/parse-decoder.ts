import type { Decoder } from '../decoder/decoder.ts'
import { CrowdError } from '../errors.ts'
import { isRecord, type JsonFields } from '../model/json-fields.ts'
import type { Family } from './family.ts'
import { readConfig } from './read-config.ts'
import { ropeFields } from './rope-fields.ts'

/** A longer window must be asked for: every layer holds rotary tables of this many rows, and caches grow. */
export const CONTEXT_DEFAULT_MAX = 8192

/**
 * Parses config.json of any known family. What a file leaves out is as transformers has it; what would change the
 * numbers and isn't supported is refused by its name.
 * @param generation generation_config.json, which has the last word on what ends an answer
 * @param contextLength tokens to serve; default: the model's own, at most CONTEXT_DEFAULT_MAX
 * @throws CrowdError model-invalid, model-unsupported, bad-option for the context
 */
export function parseDecoder(
  config: unknown,
  generation?: unknown,
  contextLength?: number,
): Decoder {
  const { fields, family, hasOwnEos } = readConfig(config)
  const served = servedContext(fields, family, contextLength)
  const described = family.describe(fields, served)
  const named = parseTokenIds(fields.value('eos_token_id'), 'config.json')
  // A family's default is meant for the vocabulary of its first models.
  const own = hasOwnEos ? named : named.filter((id) => id < described.vocabSize)
  const eosTokenIds = chooseEos(own, generation, described.vocabSize)
  return { ...described, architecture: family.architecture, eosTokenIds }
}

function servedContext(fields: JsonFields, family: Family, wanted: number | undefined): number {
  const own = family.context(fields)
  if (wanted === undefined) {
    return Math.min(own, unscaledContext(fields, family) ?? own, CONTEXT_DEFAULT_MAX)
  }
  if (Number.isInteger(wanted) && wanted > 0 && wanted <= own) return wanted
  throw new CrowdError('bad-option', `The context length must be from 1 to ${own}, not ${wanted}.`)
}

/** Where serving more tokens would change the answers to short texts, the context that changes nothing. */
function unscaledContext(fields: JsonFields, { ropeLayer }: Family): number | null {
  const rope = ropeFields(fields, ropeLayer)
  const kind = rope?.value('rope_type') ?? rope?.value('type')
  if (kind !== 'longrope' && kind !== 'su') return null
  const name = 'original_max_position_embeddings'
  const holder = fields.has(name) ? fields : rope
  return holder?.has(name) ? holder.number(name) : null
}

/** generation_config.json has the last word. @throws CrowdError model-invalid */
export function chooseEos(
  own: readonly number[],
  generation: unknown,
  vocabSize: number,
): readonly number[] {
  const value = isRecord(generation) ? generation['eos_token_id'] : undefined
  const given = parseTokenIds(value, 'generation_config.json')
  const ids = given.length > 0 ? given : own
  const outside = ids.find((id) => id >= vocabSize)
  if (outside === undefined) return ids
  throw new CrowdError(
    'model-invalid',
    `The end-of-text id ${outside} is outside the vocabulary of ${vocabSize}.`,
  )
}

/** One id, a list of ids, or nothing. @throws CrowdError model-invalid */
export function parseTokenIds(value: unknown, file: string): number[] {
  if (value === undefined || value === null) return []
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return list.map((id) => {
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0) return id
    throw new CrowdError('model-invalid', `${file}: "eos_token_id" holds ${JSON.stringify(id)}.`)
  })
}
