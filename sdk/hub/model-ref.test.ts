import { expect, test } from 'vitest'
import { formatModelRef, parseModelRef, readModelRef } from './model-ref.ts'

test.each([
  ['org/name', 'org/name', null, null],
  ['org/name@v1.0', 'org/name', 'v1.0', null],
  ['org/name@refs/pr/3', 'org/name', 'refs/pr/3', null],
  ['org/name:Q4_K_M', 'org/name', null, 'Q4_K_M'],
  ['a-b/c.d-1@main:onnx/model_q4.onnx', 'a-b/c.d-1', 'main', 'onnx/model_q4.onnx'],
])('%s is a model of a hub', (text, repo, revision, part) => {
  expect(parseModelRef(text)).toEqual({ repo, revision, part })
  expect(formatModelRef(parseModelRef(text))).toBe(text)
})

test('the address of a page is taken too', () => {
  expect(readModelRef('https://huggingface.co/org/name')).toMatchObject({ repo: 'org/name' })
  expect(readModelRef('https://huggingface.co/org/name/tree/v2/')).toEqual({
    repo: 'org/name',
    revision: 'v2',
    part: null,
  })
})

test.each([
  'name',
  './org/name',
  '../name',
  'a/b/c',
  'org/..',
  'org/na me',
  'org/name@',
  'org/x:../y',
  '/a/b',
  '',
])('"%s" is none', (text) => {
  expect(readModelRef(text)).toBeNull()
  expect(() => parseModelRef(text)).toThrow(/no model of a hub/)
})
