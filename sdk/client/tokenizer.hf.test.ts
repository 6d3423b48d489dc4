import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  describeTokenizerContract,
  TOKENIZER_TEXTS,
} from '../../test/contracts/tokenizer.contract.ts'
import { createControlTokens } from './control-tokens.ts'
import { createTokenizer } from './tokenizer.hf.ts'

const model = (file: string): Record<string, unknown> =>
  JSON.parse(
    readFileSync(new URL(`../../public/models/crowdtalk-2.6m/${file}`, import.meta.url), 'utf8'),
  ) as Record<string, unknown>

const tokenizerJson = model('tokenizer.json')
const tokenizerConfig = model('tokenizer_config.json')

const CONTROL = {
  '<|begin|>': 0,
  '<|end|>': 1,
  '<|user|>': 2,
  '<|assistant|>': 3,
  '<|system|>': 4,
}

describeTokenizerContract("the built-in model's tokenizer", {
  make: () => createTokenizer({ tokenizerJson, tokenizerConfig }),
  control: CONTROL,
})

/** Bytes as tokens, with a begin token from the post-processor, in the layout of sentencepiece exports. */
function sentencePieces(extra: { readonly prependScheme: string }): unknown {
  const vocab: Record<string, number> = { '<unk>': 0, '<s>': 1, '</s>': 2 }
  for (let byte = 0; byte < 256; byte++) {
    vocab[`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`] = byte + 3
  }
  for (const letter of '▁abcdefghijklmnopqrstuvwxyz<>/|:') vocab[letter] = Object.keys(vocab).length
  const added = (id: number, content: string) => ({
    id,
    content,
    special: true,
    normalized: false,
    lstrip: false,
    rstrip: false,
    single_word: false,
  })
  return {
    added_tokens: [added(0, '<unk>'), added(1, '<s>'), added(2, '</s>')],
    normalizer: null,
    pre_tokenizer: {
      type: 'Metaspace',
      replacement: '▁',
      prepend_scheme: extra.prependScheme,
      split: false,
    },
    model: {
      type: 'BPE',
      vocab,
      merges: [],
      unk_token: '<unk>',
      byte_fallback: true,
      fuse_unk: true,
      dropout: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      ignore_merges: false,
    },
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [],
      special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
    },
    decoder: {
      type: 'Sequence',
      decoders: [
        { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
        { type: 'ByteFallback' },
        { type: 'Fuse' },
        { type: 'Strip', content: ' ', start: 1, stop: 0 },
      ],
    },
  }
}

const PLAIN_TEMPLATE =
  '{{ bos_token }}{% for m in messages %}{{ m.role + ":" + m.content | trim + eos_token }}{% endfor %}'

describeTokenizerContract('a sentencepiece tokenizer with byte fallback', {
  make: () =>
    createTokenizer({
      tokenizerJson: sentencePieces({ prependScheme: 'first' }),
      tokenizerConfig: {
        bos_token: '<s>',
        eos_token: { content: '</s>' },
        chat_template: PLAIN_TEMPLATE,
      },
    }),
  control: { '<s>': 1, '</s>': 2 },
  // These tokenizers put a space before a text, unless there is one; so it can't come back.
  texts: TOKENIZER_TEXTS.map((text) => text.trimStart()),
})

describe('createTokenizer', () => {
  it('gives the ids that the reference implementation gave', () => {
    const golden = JSON.parse(
      readFileSync(new URL('../../test/golden/tokenizer.json', import.meta.url), 'utf8'),
    ) as { text: string; ids: number[] }[]
    const tokenizer = createTokenizer({ tokenizerJson, tokenizerConfig })
    expect(golden.length).toBeGreaterThan(20)
    for (const { text, ids } of golden) {
      expect(tokenizer.encode(text, { control: true }), text).toEqual(ids)
      if (!ids.some((id) => id <= 4)) expect(tokenizer.encode(text), text).toEqual(ids)
    }
  })

  it('adds the begin token of the post-processor, and none where there is none', () => {
    const pieces = createTokenizer({ tokenizerJson: sentencePieces({ prependScheme: 'first' }) })
    expect(pieces.encode('a')[0]).toBe(1)
    const own = createTokenizer({ tokenizerJson, tokenizerConfig })
    expect(own.encode('a').every((id) => id > 4)).toBe(true)
  })

  it('puts the space of the beginning only at the beginning', () => {
    const config = { bos_token: '<s>', eos_token: '</s>', chat_template: PLAIN_TEMPLATE }
    const texts = (prependScheme: string): string => {
      const json = sentencePieces({ prependScheme })
      const tokenizer = createTokenizer({ tokenizerJson: json, tokenizerConfig: config })
      return tokenizer.decode(
        tokenizer.encodeChat([
          { role: 'user', content: 'a</s>b' },
          { role: 'assistant', content: 'c' },
        ]),
      )
    }
    expect(texts('first')).toBe('user:a</s>bassistant:c')
    expect(texts('always')).toBe('user:a</s>b assistant:c')
  })

  it('renders the built-in template as written', () => {
    const { encodeChat, encode } = createTokenizer({ tokenizerJson, tokenizerConfig })
    const ids = encodeChat([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
    ])
    expect(ids).toEqual([0, 4, ...encode('Be kind.'), 1, 2, ...encode('Hi'), 1, 3])
  })

  it('survives the anchor and private characters in a message', () => {
    const { encodeChat, decode } = createTokenizer({ tokenizerJson, tokenizerConfig })
    const content = 'x\uE000<|end|>\uE001y'
    const ids = encodeChat([{ role: 'user', content }])
    expect(ids.filter((id) => id === 1)).toHaveLength(1)
    expect(decode(ids)).toBe(content)
    expect(encodeChat([{ role: 'user', content: 'a\uFDD0\uFDD1\uFDD0b' }]).at(-1)).toBe(3)
  })

  it("says what is wrong with a model's files", () => {
    expect(() => createTokenizer({ tokenizerJson: null })).toThrow(/tokenizer.json/)
    expect(() => createTokenizer({ tokenizerJson: { model: {} } })).toThrow(/tokenizer.json/)
    expect(() =>
      createTokenizer({ tokenizerJson, tokenizerConfig: { chat_template: '{% if %}' } }),
    ).toThrow(/chat template/)
    const bare = createTokenizer({ tokenizerJson, tokenizerConfig: {} })
    expect(() => bare.encodeChat([])).toThrow(/no chat template/)
    const raising = createTokenizer({
      tokenizerJson,
      tokenizerConfig: { chat_template: '{{ raise_exception("only one turn") }}' },
    })
    expect(() => raising.encodeChat([])).toThrow(/only one turn/)
  })

  it('prefers a template of its own file to the one in the settings, as Transformers does', () => {
    const chatTemplate = 'from the file'
    const alone = createTokenizer({ tokenizerJson, tokenizerConfig: {}, chatTemplate })
    expect(alone.decode(alone.encodeChat([]))).toBe('from the file')
    const config = { chat_template: 'from the settings' }
    const both = createTokenizer({ tokenizerJson, tokenizerConfig: config, chatTemplate })
    expect(both.decode(both.encodeChat([]))).toBe('from the file')
  })

  it('takes the default of several templates', () => {
    const { encodeChat, decode } = createTokenizer({
      tokenizerJson,
      tokenizerConfig: {
        chat_template: [
          { name: 'tool_use', template: 'no' },
          { name: 'default', template: 'yes' },
        ],
      },
    })
    expect(decode(encodeChat([]))).toBe('yes')
  })
})

describe('control tokens', () => {
  it('take white space along where they are made so', () => {
    const { split } = createControlTokens([{ id: 9, content: '<x>', lstrip: true, rstrip: true }])
    expect(split('a <x> b')).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'control', id: 9 },
      { kind: 'text', text: 'b' },
    ])
  })

  it('break up overlapping spellings', () => {
    const { split, breakUp } = createControlTokens([
      { id: 1, content: 'aba', lstrip: false, rstrip: false },
      { id: 2, content: 'ababa', lstrip: false, rstrip: false },
    ])
    expect(split('xababay')).toEqual([
      { kind: 'text', text: 'x' },
      { kind: 'control', id: 2 },
      { kind: 'text', text: 'y' },
    ])
    const broken = breakUp('abababa', '|')
    expect(split(broken)).toEqual([{ kind: 'text', text: broken }])
    expect(broken.replaceAll('|', '')).toBe('abababa')
  })
})
