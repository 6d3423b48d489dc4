import { CrowdError } from '../errors.ts'
import { findPreTokenizer } from './pre-tokenizers.ts'
import { tokenId, TOKEN_TYPE, type Vocabulary } from './vocabulary.ts'

/** The parts of tokenizer.json that depend on the kind of model. */
export type TokenizerParts = {
  readonly model: unknown
  readonly normalizer: unknown
  readonly preTokenizer: unknown
  readonly decoder: unknown
  readonly beginsWithBos: boolean
  /** Tokens are spelled in GPT-2's letters for bytes. */
  readonly isBytes: boolean
}

const SPACE = '\u2581'
/** A piece of SentencePiece has 16 characters, spaces and newlines may run on for 64. */
const PIECE_MAX = 128

/** Byte pairs with a list of merges, GPT-2's way. @throws CrowdError model-unsupported, model-invalid */
export function bytePairModel(vocabulary: Vocabulary): TokenizerParts {
  const { metadata, file } = vocabulary
  const key = 'tokenizer.ggml.pre'
  const name = metadata.has(key) ? metadata.text(key) : 'default'
  const rule = findPreTokenizer(name)
  if (rule === undefined) {
    throw new CrowdError(
      'model-unsupported',
      `${file}: ${key} ${JSON.stringify(name)} is not supported.`,
    )
  }
  const splits = rule.splits.map((regex) => ({
    type: 'Split',
    pattern: { Regex: regex },
    behavior: 'Isolated',
    invert: false,
  }))
  const bytes = { add_prefix_space: false, trim_offsets: true, use_regex: rule.gpt2 }
  return {
    isBytes: true,
    beginsWithBos: rule.beginsWithBos,
    normalizer: rule.composes ? { type: 'NFC' } : null,
    preTokenizer: {
      type: 'Sequence',
      pretokenizers: [...splits, { type: 'ByteLevel', ...bytes }],
    },
    decoder: { type: 'ByteLevel', ...bytes },
    model: {
      ...model(vocabulary),
      byte_fallback: false,
      ignore_merges: rule.ignoresMerges,
      merges: readMerges(vocabulary),
    },
  }
}

function readMerges({ metadata, file }: Vocabulary): string[][] {
  const key = 'tokenizer.ggml.merges'
  return metadata.texts(key).map((merge) => {
    // A half may begin with a space in none of these vocabularies: bytes are spelled as letters.
    const at = merge.indexOf(' ', 1)
    if (at > 0) return [merge.slice(0, at), merge.slice(at + 1)]
    throw new CrowdError('model-invalid', `${file}: ${key} holds ${JSON.stringify(merge)}.`)
  })
}

/**
 * SentencePiece's byte pairs: the pair is merged whose piece has the highest score. Every way of splitting a
 * piece into two pieces is a merge of that rank.
 */
export function sentencePieceModel(vocabulary: Vocabulary): TokenizerParts {
  const { metadata } = vocabulary
  const key = 'tokenizer.ggml.add_space_prefix'
  const prefixes = metadata.has(key) ? metadata.flag(key) : true
  const replace = { type: 'Replace', pattern: { String: ' ' }, content: SPACE }
  const prepend = { type: 'Prepend', prepend: SPACE }
  return {
    isBytes: false,
    beginsWithBos: true,
    normalizer: { type: 'Sequence', normalizers: prefixes ? [prepend, replace] : [replace] },
    preTokenizer: null,
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: SPACE }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        ...(prefixes ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : []),
      ],
    },
    model: {
      ...model(vocabulary),
      byte_fallback: true,
      fuse_unk: true,
      merges: mergesByScore(vocabulary),
    },
  }
}

function model(vocabulary: Vocabulary): Record<string, unknown> {
  const unknown = tokenId(vocabulary, 'unknown')
  return {
    type: 'BPE',
    dropout: null,
    unk_token: unknown === null ? null : (vocabulary.tokens[unknown] ?? null),
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    vocab: Object.fromEntries(vocabulary.tokens.map((token, id) => [token, id])),
  }
}

type Merge = {
  readonly left: string
  readonly right: string
  readonly score: number
  readonly leftId: number
}

function mergesByScore(vocabulary: Vocabulary): string[][] {
  const { metadata, tokens, types, file } = vocabulary
  const key = 'tokenizer.ggml.scores'
  const scores = metadata.numbers(key)
  if (scores.length !== tokens.length) {
    throw new CrowdError(
      'model-invalid',
      `${file}: ${key} has ${scores.length} values for ${tokens.length} tokens.`,
    )
  }
  const ids = new Map<string, number>()
  tokens.forEach((token, id) => {
    if (types[id] === TOKEN_TYPE.normal && token.length <= PIECE_MAX) ids.set(token, id)
  })
  const merges: Merge[] = []
  for (const [token, id] of ids) {
    const score = scores[id] ?? 0
    for (let at = 1; at < token.length; at++) {
      const leftId = ids.get(token.slice(0, at))
      if (leftId === undefined || !ids.has(token.slice(at))) continue
      merges.push({ left: token.slice(0, at), right: token.slice(at), score, leftId })
    }
  }
  merges.sort((a, b) => b.score - a.score || a.leftId - b.leftId)
  return merges.map(({ left, right }) => [left, right])
}
