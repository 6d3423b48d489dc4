import fc from 'fast-check'
import type { ChatCompletionCreateParams, CompletionCreateParams } from 'openai/resources'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { samplingParams } from '../../sdk/protocol/fields.ts'
import { FieldError } from './api-error.ts'
import type { Endpoint, Field } from './field.ts'
import { FIELDS, fieldsOf } from './fields.ts'
import { parseRequest, type ApiRequest } from './parse-request.ts'

const ENDPOINTS: readonly Endpoint[] = ['chat', 'completions']

/** The least that each endpoint takes; some fields need another one beside them. */
function bodyOf(endpoint: Endpoint, over: Record<string, unknown> = {}): Record<string, unknown> {
  const base =
    endpoint === 'chat' ? { messages: [{ role: 'user', content: 'Hi' }] } : { prompt: 'Hi' }
  const beside = {
    ...('top_logprobs' in over ? { logprobs: true } : {}),
    ...('stream_options' in over ? { stream: true } : {}),
  }
  return { model: 'm', ...base, ...beside, ...over }
}

function failure(endpoint: Endpoint, body: unknown): FieldError {
  try {
    parseRequest(endpoint, body)
  } catch (thrown) {
    if (thrown instanceof FieldError) return thrown
    throw thrown
  }
  throw new Error('was accepted')
}

const rowsOf = (treatment: Field['treatment']) =>
  ENDPOINTS.flatMap((endpoint) =>
    fieldsOf(endpoint)
      .filter((field) => field.treatment === treatment)
      .map((field) => ({ endpoint, name: field.name, field })),
  )

describe('the table of fields', () => {
  test.each(rowsOf('honoured'))('$endpoint honours $name', ({ endpoint, name, field }) => {
    if (field.treatment !== 'honoured') throw new Error('not honoured')
    const without = parseRequest(endpoint, bodyOf(endpoint))
    const withIt = parseRequest(endpoint, bodyOf(endpoint, { [name]: field.example }))
    if (name !== 'messages') expect(withIt).not.toEqual(without)
    const { param, message } = failure(endpoint, bodyOf(endpoint, { [name]: field.wrong }))
    expect(param.startsWith(name)).toBe(true)
    expect(message).toContain(name)
  })

  test.each(rowsOf('harmless'))('$endpoint ignores $name', ({ endpoint, name, field }) => {
    expect(parseRequest(endpoint, bodyOf(endpoint, { [name]: field.example }))).toEqual(
      parseRequest(endpoint, bodyOf(endpoint)),
    )
  })

  test.each(rowsOf('refused'))('$endpoint refuses $name', ({ endpoint, name, field }) => {
    if (field.treatment !== 'refused') throw new Error('not refused')
    const error = failure(endpoint, bodyOf(endpoint, { [name]: field.example }))
    expect(error).toMatchObject({ param: name, apiCode: 'unsupported_parameter' })
    for (const neutral of [null, ...field.neutral])
      expect(parseRequest(endpoint, bodyOf(endpoint, { [name]: neutral }))).toEqual(
        parseRequest(endpoint, bodyOf(endpoint)),
      )
  })

  test.each(ENDPOINTS)('null is absent for every optional field of %s', (endpoint) => {
    const names = fieldsOf(endpoint)
      .map(({ name }) => name)
      .filter((name) => !['model', 'messages', 'prompt'].includes(name))
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    expect(parseRequest(endpoint, { ...bodyOf(endpoint), ...nulls })).toEqual(
      parseRequest(endpoint, bodyOf(endpoint)),
    )
  })

  test('it has a row for every field that the official client knows', () => {
    type Named = (typeof FIELDS)[number]['name']
    type Missing = Exclude<keyof ChatCompletionCreateParams | keyof CompletionCreateParams, Named>
    // Fails to compile when the client learns a field that the table does not have.
    const missing: [Missing] extends [never] ? true : Missing = true
    expect(missing).toBe(true)
  })

  test('a field has one row for each endpoint', () => {
    for (const endpoint of ENDPOINTS) {
      const names = fieldsOf(endpoint).map(({ name }) => name)
      expect(new Set(names).size).toBe(names.length)
    }
  })
})

describe('messages', () => {
  const read = (messages: unknown) => parseRequest('chat', { model: 'm', messages }).prompts[0]
  const wrong = (messages: unknown) => failure('chat', { model: 'm', messages })

  test('text parts are joined, developer is system, an assistant may be empty', () => {
    expect(
      read([
        { role: 'developer', content: 'Be brief.' },
        {
          role: 'user',
          name: 'ada',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [], refusal: null },
        { role: 'user', content: '' },
      ]),
    ).toEqual({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'ab' },
        { role: 'assistant', content: '' },
        { role: 'user', content: '' },
      ],
    })
  })

  test.each([
    ['hello', 'messages'],
    [[], 'messages'],
    [['hi'], 'messages[0]'],
    [[{ content: 'x' }], 'messages[0].role'],
    [[{ role: 'constructor', content: 'x' }], 'messages[0].role'],
    [[{ role: 'user' }], 'messages[0].content'],
    [[{ role: 'user', content: 7 }], 'messages[0].content'],
    [[{ role: 'user', content: ['x'] }], 'messages[0].content[0]'],
    [[{ role: 'user', content: [{ type: 'text' }] }], 'messages[0].content[0].text'],
    [
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }],
      'messages[0].content[0]',
    ],
    [[{ role: 'assistant', content: 'x', tool_calls: [{}] }], 'messages[0].tool_calls'],
    [[{ role: 'assistant', content: 'x', audio: { id: 'x' } }], 'messages[0].audio'],
  ])('refused by name: %j', (messages, param) => {
    expect(wrong(messages).param).toBe(param)
  })
})

test('a conversation has a bounded number of turns', () => {
  const messages = Array(4_097).fill({ role: 'user', content: 'x' })
  expect(failure('chat', { model: 'm', messages }).param).toBe('messages')
})

describe('prompts of completions', () => {
  const read = (prompt: unknown) => parseRequest('completions', { model: 'm', prompt }).prompts

  test('text, ids, and lists of both', () => {
    expect(read('a')).toEqual([{ prompt: 'a' }])
    expect(read(['a', 'b'])).toEqual([{ prompt: 'a' }, { prompt: 'b' }])
    expect(read([1, 2])).toEqual([{ promptIds: [1, 2] }])
    expect(read([[1], 'b'])).toEqual([{ promptIds: [1] }, { prompt: 'b' }])
  })

  test.each([[[]], [{}], [[1, 'a']], [[['a']]], [[1.5]], [[-1]], [Array(9).fill('a')]])(
    '%j is refused',
    (prompt) => {
      expect(failure('completions', { model: 'm', prompt }).param).toMatch(/^prompt/)
    },
  )

  test('prompts and choices are limited together', () => {
    const body = { model: 'm', prompt: ['a', 'b', 'c'], n: 3 }
    expect(failure('completions', body).param).toBe('n')
  })
})

test('the newer token limit wins, and completions have OpenAI’s default', () => {
  const limits = { max_tokens: 5, max_completion_tokens: 7 }
  expect(parseRequest('chat', bodyOf('chat', limits)).maxTokens).toBe(7)
  expect(parseRequest('chat', bodyOf('chat')).maxTokens).toBeUndefined()
  expect(parseRequest('completions', bodyOf('completions')).maxTokens).toBe(16)
})

test('stop as a text, a list, with empty ones, and too many', () => {
  const stopOf = (stop: unknown) => parseRequest('chat', bodyOf('chat', { stop })).stop
  expect(stopOf('a')).toEqual(['a'])
  expect(stopOf(['a', '', 'b'])).toEqual(['a', 'b'])
  expect(stopOf('')).toEqual([])
  expect(failure('chat', bodyOf('chat', { stop: Array(17).fill('a') })).param).toBe('stop')
  expect(failure('chat', bodyOf('chat', { stop: 'a'.repeat(1_001) })).param).toBe('stop')
})

test('what a request leaves open is the model’s own, and what it says counts more', () => {
  const defaults = { temperature: 0.6, topP: 0.9, topK: 20, minP: 0.1, repetitionPenalty: 1.2 }
  for (const endpoint of ENDPOINTS) {
    expect(parseRequest(endpoint, bodyOf(endpoint), defaults).sampling).toMatchObject(defaults)
    const said = { temperature: 0, top_p: 1, top_k: 0, min_p: 0, repetition_penalty: 1 }
    expect(parseRequest(endpoint, bodyOf(endpoint, said), defaults).sampling).toMatchObject({
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
    })
    expect(parseRequest(endpoint, bodyOf(endpoint)).sampling).toMatchObject({
      temperature: 1,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
    })
  }
})

test('alternatives need logprobs, and logprobs alone are fine', () => {
  expect(failure('chat', { ...bodyOf('chat'), top_logprobs: 2 }).param).toBe('top_logprobs')
  expect(parseRequest('chat', bodyOf('chat', { logprobs: true }))).toMatchObject({
    logprobs: true,
    sampling: { topLogprobs: 0 },
  })
  expect(parseRequest('completions', bodyOf('completions', { logprobs: 0 })).logprobs).toBe(true)
})

test('options of a stream are checked, and ignored, where there is none', () => {
  const options = (include_usage: unknown) => ({ stream: false, stream_options: { include_usage } })
  expect(parseRequest('chat', bodyOf('chat', options(true))).includeUsage).toBe(false)
  expect(failure('chat', bodyOf('chat', options('yes'))).param).toBe('stream_options.include_usage')
})

test.each([undefined, null, 'text', [], 7])('%j is no request', (body) => {
  expect(failure('chat', body).param).toBe('body')
})

test.each(ENDPOINTS)('what is missing of %s is named', (endpoint) => {
  expect(failure(endpoint, bodyOf(endpoint, { model: undefined }))).toMatchObject({
    param: 'model',
    apiCode: 'missing_required_parameter',
  })
  expect(failure(endpoint, { model: 'm' }).param).toBe(endpoint === 'chat' ? 'messages' : 'prompt')
})

test('whatever comes is refused by name, or is something that every stage takes', () => {
  const names = [...new Set(FIELDS.map(({ name }) => name))]
  const body = fc.record(
    Object.fromEntries(
      names.map((name) => [
        name,
        fc.oneof(
          fc.constant(bodyOf('chat', bodyOf('completions'))[name]),
          fc.double(),
          fc.integer(),
          fc.jsonValue({ maxDepth: 2 }),
        ),
      ]),
    ),
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.constantFrom(...ENDPOINTS), body, (endpoint, fields) => {
      let request: ApiRequest
      try {
        request = parseRequest(endpoint, { ...bodyOf(endpoint), ...fields })
      } catch (thrown) {
        if (!(thrown instanceof FieldError)) throw thrown
        return thrown.message.length <= 600 && thrown.param !== ''
      }
      return v.safeParse(samplingParams, request.sampling).success
    }),
    { numRuns: 2_000 },
  )
})
