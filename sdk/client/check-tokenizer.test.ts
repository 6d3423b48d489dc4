import { expect, test } from 'vitest'
import { checkTokenizer } from './check-tokenizer.ts'

const MODEL = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] }
const withModel = (change: Readonly<Record<string, unknown>>): unknown => ({
  model: { ...MODEL, ...change },
})

test.each([
  ['pairs in one text', withModel({}), 'BPE'],
  ['pairs of texts', withModel({ merges: [['a', 'b']] }), 'BPE'],
  ['no merges at all', withModel({ merges: [] }), 'BPE'],
  ['an old file without a type', withModel({ type: undefined }), 'BPE'],
  ['pieces with scores', { model: { vocab: [['a', -1.5]] } }, 'Unigram'],
])('takes %s', (_what, json, type) => {
  expect(checkTokenizer(json)).toMatchObject({ model: { type } })
})

test.each([
  ['no object', [], /is not an object/],
  ['no model', { version: '1.0' }, /has no "model"/],
  ['whole words', withModel({ type: 'WordLevel' }), /model\.type "WordLevel" is not supported/],
  ['an unknown type', withModel({ type: 'Foo' }), /model\.type "Foo" is not supported/],
  [
    'neither type nor merges',
    withModel({ type: undefined, merges: undefined }),
    /type is missing and is not supported/,
  ],
  ['no vocabulary', withModel({ vocab: undefined }), /model\.vocab is not an object/],
  ['a fraction', withModel({ vocab: { a: 0.5 } }), /gives "a" the id 0\.5/],
  ['a negative id', withModel({ vocab: { a: -1 } }), /gives "a" the id -1/],
  ['an id in quotes', withModel({ vocab: { a: '1' } }), /gives "a" the id "1"/],
  ['an id beyond all', withModel({ vocab: { a: 2 ** 24 } }), /gives "a" the id 16777216/],
  ['no merges', withModel({ merges: undefined }), /model\.merges is not a list/],
  ['half a merge', withModel({ merges: ['a b', 'x'] }), /model\.merges\[1\], but "x"/],
  ['three thirds', withModel({ merges: ['a b c'] }), /model\.merges\[0\], but "a b c"/],
  ['both kinds', withModel({ merges: [['a', 'b'], 'a b'] }), /model\.merges\[1\], but "a b"/],
  ['a piece without a score', { model: { type: 'Unigram', vocab: [['a']] } }, /model\.vocab\[0\]/],
  [
    'an added token without a text',
    { model: MODEL, added_tokens: [{ id: 3 }] },
    /no text in added_tokens\[0\]/,
  ],
  [
    'an added token between two ids',
    { model: MODEL, added_tokens: [{ id: 3.5, content: '<x>' }] },
    /gives "<x>" the id 3\.5/,
  ],
])('refuses %s by name', (_what, json, message) => {
  expect(() => checkTokenizer(json)).toThrow(message)
})
