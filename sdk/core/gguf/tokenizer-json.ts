import { CrowdError } from '../errors.ts'
import { bytePairModel, sentencePieceModel, type TokenizerParts } from './tokenizer-models.ts'
import { endTokenIds, tokenId, TOKEN_TYPE, type Vocabulary } from './vocabulary.ts'

/** Files of the Hugging Face layout, parsed. */
export type TokenizerFiles = {
  readonly tokenizer: Readonly<Record<string, unknown>>
  readonly tokenizerConfig: Readonly<Record<string, unknown>>
  readonly generationConfig: Readonly<Record<string, unknown>>
}

/**
 * The tokenizer, the chat template and the settings that a GGUF file has in its metadata.
 * @param architecture `general.architecture`
 * @throws CrowdError model-invalid, model-unsupported (the entry is named)
 */
export function tokenizerFiles(vocabulary: Vocabulary, architecture: string): TokenizerFiles {
  const parts = modelParts(vocabulary)
  const bos = tokenId(vocabulary, 'bos')
  const addsBos = flag(vocabulary, 'add_bos_token', parts.beginsWithBos) && bos !== null
  const addsEos = endsWithEos(vocabulary)
  const stripsRight = architecture === 'phi3' && !parts.isBytes
  return {
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: addedTokens(vocabulary, stripsRight),
      normalizer: parts.normalizer,
      pre_tokenizer: parts.preTokenizer,
      post_processor: frame(
        vocabulary,
        addsBos ? bos : null,
        addsEos ? tokenId(vocabulary, 'eos') : null,
      ),
      decoder: parts.decoder,
      model: parts.model,
    },
    tokenizerConfig: {
      ...tokenNames(vocabulary),
      add_bos_token: addsBos,
      add_eos_token: addsEos,
      clean_up_tokenization_spaces: false,
      ...chatTemplate(vocabulary),
    },
    generationConfig: generationConfig(vocabulary),
  }
}

function modelParts(vocabulary: Vocabulary): TokenizerParts {
  const { metadata, file } = vocabulary
  const kind = metadata.text('tokenizer.ggml.model')
  if (kind === 'llama') return sentencePieceModel(vocabulary)
  if (kind === 'gpt2') return bytePairModel(vocabulary)
  throw new CrowdError(
    'model-unsupported',
    `${file}: tokenizer.ggml.model ${JSON.stringify(kind)} is not supported; "llama" and "gpt2" are.`,
  )
}

function flag({ metadata }: Vocabulary, name: string, fallback: boolean): boolean {
  const key = `tokenizer.ggml.${name}`
  return metadata.has(key) ? metadata.flag(key) : fallback
}

/** Phi-3's own exceptions from "a control token takes the spaces after it". */
const KEEPS_SPACES: ReadonlySet<string> = new Set(['<unk>', '<s>', '<|endoftext|>'])

/** What is found in a text as it stands, before anything else happens to it. */
function addedTokens(vocabulary: Vocabulary, stripsRight: boolean): unknown[] {
  const { tokens, types, isControl } = vocabulary
  return tokens.flatMap((content, id) => {
    const special = isControl(id)
    if (!special && types[id] !== TOKEN_TYPE.userDefined) return []
    const rstrip = stripsRight && !KEEPS_SPACES.has(content)
    return [{ id, content, special, normalized: false, single_word: false, lstrip: false, rstrip }]
  })
}

/** Whether a text is ended like a document of the training. @throws CrowdError model-unsupported */
function endsWithEos(vocabulary: Vocabulary): boolean {
  const { file } = vocabulary
  const own = 'is true; this is not supported'
  if (flag(vocabulary, 'add_sep_token', false)) {
    throw new CrowdError('model-unsupported', `${file}: tokenizer.ggml.add_sep_token ${own}.`)
  }
  if (!flag(vocabulary, 'add_eos_token', false)) return false
  if (tokenId(vocabulary, 'eos') !== null) return true
  const message = `${file}: tokenizer.ggml.add_eos_token ${own} without an eos_token_id.`
  throw new CrowdError('model-unsupported', message)
}

/** The tokens round a text; null = none there. */
function frame({ tokens }: Vocabulary, before: number | null, after: number | null): unknown {
  if (before === null && after === null) return null
  const special = (id: number | null): unknown[] =>
    id === null ? [] : [{ SpecialToken: { id: tokens[id] ?? '', type_id: 0 } }]
  const framed = (id: string, type: number): unknown[] => [
    ...special(before),
    { Sequence: { id, type_id: type } },
    ...special(after),
  ]
  const ids = [...new Set([before, after])].filter((id) => id !== null)
  return {
    type: 'TemplateProcessing',
    single: framed('A', 0),
    pair: [...framed('A', 0), ...framed('B', 1)],
    special_tokens: Object.fromEntries(
      ids.map((id) => [tokens[id] ?? '', { id: tokens[id], ids: [id], tokens: [tokens[id]] }]),
    ),
  }
}

const NAMES: Readonly<Record<string, string>> = {
  bos: 'bos_token',
  eos: 'eos_token',
  unknown: 'unk_token',
  padding: 'pad_token',
}

function tokenNames(vocabulary: Vocabulary): Record<string, string> {
  const names: Record<string, string> = {}
  for (const [own, theirs] of Object.entries(NAMES)) {
    const id = tokenId(vocabulary, own)
    if (id !== null) names[theirs] = vocabulary.tokens[id] ?? ''
  }
  return names
}

const TEMPLATE = 'tokenizer.chat_template'

/** One template, or several by name. */
function chatTemplate({ metadata }: Vocabulary): Record<string, unknown> {
  const others = metadata.keys(`${TEMPLATE}.`)
  const main = metadata.has(TEMPLATE) ? metadata.text(TEMPLATE) : null
  if (others.length === 0) return main === null ? {} : { chat_template: main }
  const named = others.map((key) => ({
    name: key.slice(TEMPLATE.length + 1),
    template: metadata.text(key),
  }))
  const all = main === null ? named : [{ name: 'default', template: main }, ...named]
  return { chat_template: all }
}

/** Sampling that the file recommends, by the names of generation_config.json. */
const SAMPLING: Readonly<Record<string, string>> = {
  temp: 'temperature',
  top_k: 'top_k',
  top_p: 'top_p',
  min_p: 'min_p',
  penalty_repeat: 'repetition_penalty',
}

function generationConfig(vocabulary: Vocabulary): Record<string, unknown> {
  const { metadata } = vocabulary
  const config: Record<string, unknown> = { eos_token_id: endTokenIds(vocabulary) }
  const bos = tokenId(vocabulary, 'bos')
  if (bos !== null) config['bos_token_id'] = bos
  for (const [own, theirs] of Object.entries(SAMPLING)) {
    const key = `general.sampling.${own}`
    if (!metadata.has(key)) continue
    config[theirs] = metadata.number(key)
    // Without it the others count for nothing.
    config['do_sample'] = true
  }
  return config
}
