import { describe, expect, it } from 'vitest'
import { createTokenizer } from '../../client/tokenizer.hf.ts'
import { parseSamplingDefaults } from '../sampling/generation-config.ts'
import { readMetadata } from './metadata.ts'
import { tokenizerFiles } from './tokenizer-json.ts'
import { readVocabulary } from './vocabulary.ts'

/** Pieces, byte tokens, a user-defined pair of spaces; scores fall with the id. */
const BYTES = Array.from({ length: 256 }, (_, byte) => {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`
})
const PIECES = ['▁', 'a', 'b', 'n', '▁a', 'an', 'ab', '▁ab', 'ban', '▁ban']
const SPM_TOKENS = ['<unk>', '<s>', '</s>', '<|im_end|>', '  ', ...BYTES, ...PIECES]
const SPM = {
  'tokenizer.ggml.model': 'llama',
  'tokenizer.ggml.tokens': SPM_TOKENS,
  'tokenizer.ggml.scores': SPM_TOKENS.map((_, id) => -id),
  'tokenizer.ggml.token_type': SPM_TOKENS.map((_, id) => [2, 3, 3, 4, 4][id] ?? (id < 261 ? 6 : 1)),
  'tokenizer.ggml.bos_token_id': 1,
  'tokenizer.ggml.eos_token_id': 2,
  'tokenizer.ggml.unknown_token_id': 0,
}
const id = (token: string): number => SPM_TOKENS.indexOf(token)

function open(
  entries: Readonly<Record<string, unknown>>,
  architecture = 'llama',
): ReturnType<typeof tokenizerFiles> & { encode: (text: string) => number[] } {
  const metadata = readMetadata(entries, 'm.gguf')
  const files = tokenizerFiles(readVocabulary(metadata, 1000, 'm.gguf'), architecture)
  const tokenizer = createTokenizer({
    tokenizerJson: files.tokenizer,
    tokenizerConfig: files.tokenizerConfig,
  })
  return { ...files, encode: (text) => tokenizer.encode(text) }
}

describe('a SentencePiece vocabulary', () => {
  it('puts a space first, merges by score, and falls back to bytes', () => {
    const { encode } = open(SPM)
    // "▁a" beats "ab", which has a lower score; "▁ab" then needs "▁a" and "b".
    expect(encode('ab')).toEqual([1, id('▁ab')])
    expect(encode('a b')).toEqual([1, id('▁a'), id('▁'), id('b')])
    expect(encode('ban')).toEqual([1, id('▁ban')])
    expect(encode('é')).toEqual([1, id('▁'), id('<0xC3>'), id('<0xA9>')])
  })

  it('without the first space where the file says so', () => {
    const { encode, tokenizer } = open({ ...SPM, 'tokenizer.ggml.add_space_prefix': false })
    expect(encode('ban')).toEqual([1, id('ban')])
    expect(JSON.stringify(tokenizer['decoder'])).not.toContain('Strip')
  })

  it('begins with the first token unless the file says no', () => {
    expect(open({ ...SPM, 'tokenizer.ggml.add_bos_token': false }).encode('a')).toEqual([id('▁a')])
  })

  it('ends with the last token where the file says so', () => {
    const ends = { ...SPM, 'tokenizer.ggml.add_eos_token': true }
    expect(open(ends).encode('a')).toEqual([1, id('▁a'), 2])
    expect(open(ends).tokenizerConfig['add_eos_token']).toBe(true)
    const alone = { ...ends, 'tokenizer.ggml.add_bos_token': false }
    expect(open(alone).encode('a')).toEqual([id('▁a'), 2])
    const nameless = { ...ends, 'tokenizer.ggml.eos_token_id': undefined }
    expect(() => open(nameless)).toThrow(/add_eos_token is true; .* without an eos_token_id/)
    const separated = { ...SPM, 'tokenizer.ggml.add_sep_token': true }
    expect(() => open(separated)).toThrow(/add_sep_token is true/)
  })

  it('finds user-defined tokens in the text as it stands', () => {
    const tokens = open({ ...SPM, 'tokenizer.ggml.add_space_prefix': false }).encode('a  b')
    expect(tokens).toEqual([1, id('a'), id('  '), id('b')])
  })

  it('makes a token that ends a turn a control token, whatever its type', () => {
    const { tokenizer, generationConfig, encode } = open(SPM)
    expect(tokenizer['added_tokens']).toContainEqual(
      expect.objectContaining({ content: '<|im_end|>', special: true }),
    )
    expect(generationConfig['eos_token_id']).toEqual([2, 3])
    expect(encode('<|im_end|>')).not.toContain(3)
  })

  it('Phi-3: control tokens take the spaces after them, the first tokens do not', () => {
    const { tokenizer } = open(SPM, 'phi3')
    const added = tokenizer['added_tokens']
    expect(added).toContainEqual(expect.objectContaining({ content: '</s>', rstrip: true }))
    expect(added).toContainEqual(expect.objectContaining({ content: '<s>', rstrip: false }))
  })

  it('hands on the sampling that the file recommends, so that it counts', () => {
    const sampling = {
      'general.sampling.temp': Math.fround(0.6),
      'general.sampling.top_k': 20,
      'general.sampling.top_p': Math.fround(0.95),
      'general.sampling.min_p': 0,
      'general.sampling.penalty_repeat': Math.fround(1.05),
    }
    expect(parseSamplingDefaults(open({ ...SPM, ...sampling }).generationConfig)).toEqual({
      temperature: 0.6,
      topK: 20,
      topP: 0.95,
      minP: 0,
      repetitionPenalty: 1.05,
    })
    expect(open(SPM).generationConfig).not.toHaveProperty('do_sample')
  })

  it('refuses scores that are not there or too few', () => {
    expect(() => open({ ...SPM, 'tokenizer.ggml.scores': [0] })).toThrow(/scores has 1 values/)
    expect(() => open({ ...SPM, 'tokenizer.ggml.scores': undefined })).toThrow(/scores is missing/)
  })
})

describe('a byte-pair vocabulary', () => {
  const tokens = [...Array.from('0123456789'), 'Ġ', 'a', '12', '123', 'Ġ1', 'aa', '<|end|>']
  const BPE = {
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.merges': ['1 2', '12 3', 'Ġ 1', 'a a'],
    'tokenizer.ggml.bos_token_id': 16,
  }
  const spelled = (pre: string, text: string): string[] =>
    open({ ...BPE, 'tokenizer.ggml.pre': pre })
      .encode(text)
      .map((token) => tokens[token] ?? '')

  it('splits as the file names it', () => {
    expect(spelled('gpt-2', '1234')).toEqual(['123', '4'])
    expect(spelled('smollm', '123')).toEqual(['1', '2', '3'])
    expect(spelled('qwen2', '123')).toEqual(['1', '2', '3'])
    expect(spelled('llama-bpe', '1234')).toEqual(['<|end|>', '123', '4'])
    expect(spelled('gpt-2', ' 1')).toEqual(['Ġ1'])
    expect(spelled('smollm', ' 1')).toEqual(['Ġ', '1'])
    expect(spelled('gpt-4o', '1234')).toEqual(['123', '4'])
    expect(spelled('tekken', '12')).toEqual(['<|end|>', '1', '2'])
  })

  it('refuses merges that are none', () => {
    expect(() =>
      open({ ...BPE, 'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.merges': ['ab'] }),
    ).toThrow(/merges holds "ab"/)
  })

  it('hands on the chat templates, by name where there are several', () => {
    const one = { ...BPE, 'tokenizer.chat_template': 'T' }
    expect(open(one).tokenizerConfig['chat_template']).toBe('T')
    const two = { ...one, 'tokenizer.chat_template.tool_use': 'U' }
    expect(open(two).tokenizerConfig['chat_template']).toEqual([
      { name: 'default', template: 'T' },
      { name: 'tool_use', template: 'U' },
    ])
    expect(open(BPE).tokenizerConfig).not.toHaveProperty('chat_template')
  })
})
