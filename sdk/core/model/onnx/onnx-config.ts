import { CrowdError } from '../../errors.ts'
import { isRecord, jsonFields, type JsonFields } from '../json-fields.ts'
import { parseTokenIds } from '../../families/parse-decoder.ts'

/** What an exported graph doesn't say by itself, from the config.json beside it. */
export type OnnxConfig = {
  readonly architecture: string
  readonly headCount: number
  readonly headSize: number
  readonly contextLength: number
  readonly eosTokenIds: readonly number[]
}

const SIZE = { min: 1, max: 1 << 24 }
const HEADS = ['num_attention_heads', 'n_head', 'n_heads', 'num_heads']
const CONTEXT = ['max_position_embeddings', 'n_positions', 'max_seq_len', 'seq_length', 'n_ctx']
const WIDTH = ['hidden_size', 'n_embd', 'd_model']

/**
 * Families name the same things differently; of a model with several parts the text part counts.
 * @throws CrowdError model-invalid
 */
export function parseOnnxConfig(json: unknown): OnnxConfig {
  const outer = jsonFields(json, 'config.json')
  const text = isRecord(outer.value('text_config')) ? outer.object('text_config') : outer
  const integer = (names: readonly string[]): number => {
    for (const fields of [text, outer]) {
      const name = names.find((candidate) => fields.has(candidate))
      if (name !== undefined) return fields.integer(name, SIZE)
    }
    throw new CrowdError('model-invalid', `config.json has none of ${names.join(', ')}.`)
  }
  const headCount = integer(HEADS)
  const headSize = text.has('head_dim')
    ? text.integer('head_dim', SIZE)
    : Math.floor(integer(WIDTH) / headCount)
  return {
    architecture: architectureOf(outer),
    headCount,
    headSize,
    contextLength: integer(CONTEXT),
    eosTokenIds: parseTokenIds(
      text.value('eos_token_id') ?? outer.value('eos_token_id'),
      'config.json',
    ),
  }
}

function architectureOf(fields: JsonFields): string {
  const names = fields.has('architectures') ? fields.array('architectures') : []
  const name = typeof names[0] === 'string' ? names[0] : fields.string('model_type')
  return name.replace(/[^\w.-]+/g, '-').slice(0, 100) || 'unknown'
}
