import { CrowdError } from '../errors.ts'
import type { Metadata } from './metadata.ts'

/** `tokenizer.ggml.token_type`. */
export const TOKEN_TYPE = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 }

/** The vocabulary of a GGUF file. */
export type Vocabulary = {
  readonly file: string
  readonly metadata: Metadata
  /** By id; spelled as the model type has them (SentencePiece pieces, or GPT-2's letters for bytes). */
  readonly tokens: readonly string[]
  readonly types: readonly number[]
  /** Texts that end an answer, and so are control tokens whatever their type says. */
  readonly isControl: (id: number) => boolean
}

/** Tokens that end a turn or a text, by their spelling: files name only one or two of them by id. */
const END_TOKENS: ReadonlySet<string> = new Set([
  '<|eot_id|>',
  '<|im_end|>',
  '<|end|>',
  '<end_of_turn>',
  '<|endoftext|>',
  '<|end_of_text|>',
  '<|eom_id|>',
  '<EOT>',
])

/** @throws CrowdError model-invalid, model-unsupported (the entry is named) */
export function readVocabulary(metadata: Metadata, rows: number, file: string): Vocabulary {
  const tokens = metadata.texts('tokenizer.ggml.tokens').map((token, id) =>
    // An empty token can't be found by its text; its id must still mean something.
    token === '' ? `[EMPTY_${id}]` : token,
  )
  if (tokens.length === 0 || tokens.length > rows) {
    throw new CrowdError(
      'model-invalid',
      `${file}: tokenizer.ggml.tokens has ${tokens.length} tokens, the embedding ${rows} rows.`,
    )
  }
  if (new Set(tokens).size !== tokens.length) {
    throw new CrowdError(
      'model-unsupported',
      `${file}: tokenizer.ggml.tokens has two tokens with the same text.`,
    )
  }
  const types = metadata.has('tokenizer.ggml.token_type')
    ? metadata.numbers('tokenizer.ggml.token_type')
    : tokens.map(() => TOKEN_TYPE.normal)
  if (types.length !== tokens.length) {
    throw new CrowdError(
      'model-invalid',
      `${file}: tokenizer.ggml.token_type has ${types.length} values for ${tokens.length} tokens.`,
    )
  }
  const { control, unknown } = TOKEN_TYPE
  return {
    file,
    metadata,
    tokens,
    types,
    isControl: (id) =>
      types[id] === control || types[id] === unknown || END_TOKENS.has(tokens[id] ?? ''),
  }
}

/**
 * The id that an entry such as `tokenizer.ggml.bos_token_id` names, where it's one of the vocabulary.
 */
export function tokenId({ metadata, tokens }: Vocabulary, name: string): number | null {
  const key = `tokenizer.ggml.${name}_token_id`
  if (!metadata.has(key)) return null
  const id = metadata.number(key)
  return Number.isInteger(id) && id >= 0 && id < tokens.length ? id : null
}

/** Everything that ends an answer: what the file names, and tokens that are spelled so. */
export function endTokenIds(vocabulary: Vocabulary): number[] {
  const named = ['eos', 'eot', 'eom'].flatMap((name) => tokenId(vocabulary, name) ?? [])
  const spelled = vocabulary.tokens.flatMap((token, id) => (END_TOKENS.has(token) ? [id] : []))
  return [...new Set([...named, ...spelled])]
}
