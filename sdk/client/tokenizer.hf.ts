import { Tokenizer as HfTokenizer } from '@huggingface/tokenizers'
import { CrowdError, toCrowdError } from '../core/errors.ts'
import { isRecord, readChatTemplate } from './chat-template.ts'
import { checkTokenizer } from './check-tokenizer.ts'
import { createControlTokens, type ControlToken } from './control-tokens.ts'
import type { ChatMessage, Tokenizer } from './tokenizer.ts'

export type TokenizerFiles = {
  /** Parsed tokenizer.json. */
  readonly tokenizerJson: unknown
  /** Parsed tokenizer_config.json, where there is one. */
  readonly tokenizerConfig?: unknown
  /** chat_template.jinja as text; goes before the template in tokenizer_config.json. */
  readonly chatTemplate?: string | undefined
}

/**
 * Stands before a text that is not the first section, since some tokenizers treat the beginning of a text
 * in their own way. Unicode promises that these are never characters.
 */
const ANCHOR = '\uFDD0\uFDD1\uFDD0'

/**
 * The Tokenizer port over Hugging Face's files. The library below knows no control tokens at all: they are
 * cut out of the template's own text here, so what a person typed can never become one.
 *
 *     createTokenizer({ tokenizerJson, tokenizerConfig }).encodeChat([{ role: 'user', content: 'Hi' }])
 *
 * @throws CrowdError model-invalid, model-unsupported
 */
export function createTokenizer(files: TokenizerFiles): Tokenizer {
  const { tokenizerConfig } = files
  const json = checkTokenizer(files.tokenizerJson)
  const config = isRecord(tokenizerConfig) ? tokenizerConfig : {}
  const tokens = controlTokens(json, config)
  const control = createControlTokens(tokens)
  const anchorId = maxId(json) + 1
  const plain = openPlain(json, config, { tokens, anchorId })
  const template = readChatTemplate(config, files.chatTemplate)
  const frame = framing(plain, tokens)

  /** Text without control tokens to ids. `isFirst` = nothing stands before it. */
  function encodeText(text: string, isFirst: boolean): number[] {
    if (text === '') return []
    const ids = plain.encode(isFirst ? text : ANCHOR + text, { add_special_tokens: false }).ids
    return ids.filter((id) => id !== anchorId)
  }

  function encodeSafely(text: string, isFirst: boolean): number[] {
    const ids = encodeText(text, isFirst)
    if (!ids.some((id) => control.ids.has(id))) return ids
    // A vocabulary that spells a control token as one piece: character by character it can't.
    return Array.from(text)
      .flatMap((character, i) => encodeText(character, isFirst && i === 0))
      .filter((id) => !control.ids.has(id))
  }

  function encodeChat(messages: readonly ChatMessage[]): number[] {
    if (template === null) {
      throw new CrowdError('model-unsupported', 'this model has no chat template')
    }
    const mark = unusedCharacter([template.source, ...messages.map(({ content }) => content)])
    const marked = messages.map(({ role, content }) => ({
      role,
      content: control.breakUp(content, mark),
    }))
    return encodeMarkup(template.render(marked), mark)
  }

  /** Spellings of control tokens become those tokens, unless they have the mark inside, which is dropped. */
  function encodeMarkup(text: string, mark: string): number[] {
    return control.split(text).flatMap((section, i) => {
      if (section.kind === 'control') return [section.id]
      return encodeSafely(section.text.replaceAll(mark, ''), i === 0)
    })
  }

  return {
    encode(text, options = {}) {
      const isMarkup = options.control === true
      const ids = isMarkup ? encodeMarkup(text, ANCHOR) : encodeSafely(text, true)
      return [...frame.before, ...ids, ...frame.after]
    },
    decode(ids) {
      const shown = ids.filter((id) => !control.ids.has(id))
      return shown.length === 0 ? '' : plain.decode(shown)
    },
    encodeChat,
  }
}

/** What has a spelling and steers: added tokens marked as special, and those the settings name so. */
function controlTokens(
  json: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>>,
): ControlToken[] {
  const extra = config['additional_special_tokens']
  const named = new Set<unknown>(
    Array.isArray(extra) ? extra.map((e: unknown) => (isRecord(e) ? e['content'] : e)) : [],
  )
  return addedTokens(json).flatMap((entry) => {
    const { id, content, special, lstrip, rstrip } = entry
    if (typeof id !== 'number' || typeof content !== 'string') return []
    if (special !== true && !named.has(content)) return []
    return [{ id, content, lstrip: lstrip === true, rstrip: rstrip === true }]
  })
}

function addedTokens(json: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>[] {
  const list = json['added_tokens']
  return Array.isArray(list) ? list.filter(isRecord) : []
}

/** The library's tokenizer without control tokens, but with the anchor. */
function openPlain(
  json: Readonly<Record<string, unknown>>,
  config: Readonly<Record<string, unknown>>,
  own: { readonly tokens: readonly ControlToken[]; readonly anchorId: number },
): HfTokenizer {
  const controlIds = new Set(own.tokens.map(({ id }) => id))
  const anchor = { id: own.anchorId, content: ANCHOR, special: true, normalized: false }
  const added = addedTokens(json).filter(({ id }) => !controlIds.has(Number(id)))
  const plainJson = { ...json, added_tokens: [...added, anchor] }
  // Cleaning up removes spaces that the model wrote; off unless the model's settings ask for it.
  const cleans = config['clean_up_tokenization_spaces'] === true
  try {
    return new HfTokenizer(plainJson, {
      ...config,
      additional_special_tokens: [],
      clean_up_tokenization_spaces: cleans,
    })
  } catch (thrown) {
    const { message } = toCrowdError(thrown)
    throw new CrowdError('model-invalid', `tokenizer.json can't be used: ${message}`, {
      cause: thrown,
    })
  }
}

/** The control tokens that the post-processor puts round a text. */
function framing(
  plain: HfTokenizer,
  tokens: readonly ControlToken[],
): { readonly before: readonly number[]; readonly after: readonly number[] } {
  const framed = plain.encode('a', { add_special_tokens: true }).tokens
  const bare = plain.encode('a', { add_special_tokens: false }).tokens
  const start = framed.findIndex((_, i) => bare.every((token, j) => framed[i + j] === token))
  const idsOf = (names: readonly string[]): number[] =>
    names.flatMap((name) => tokens.find(({ content }) => content === name)?.id ?? [])
  return { before: idsOf(framed.slice(0, start)), after: idsOf(framed.slice(start + bare.length)) }
}

function maxId(json: Readonly<Record<string, unknown>>): number {
  const model = json['model']
  const vocab = isRecord(model) ? model['vocab'] : undefined
  let max = -1
  if (Array.isArray(vocab)) max = vocab.length - 1
  else if (isRecord(vocab)) for (const id of Object.values(vocab)) max = Math.max(max, Number(id))
  for (const { id } of addedTokens(json)) max = Math.max(max, Number(id))
  return max
}

/** A character for private use that none of the texts has. */
function unusedCharacter(texts: readonly string[]): string {
  for (let code = 0xe000; code <= 0xf8ff; code++) {
    const character = String.fromCharCode(code)
    if (!texts.some((text) => text.includes(character))) return character
  }
  throw new CrowdError('bad-request', 'the messages use every character for private use')
}
