import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runPrompt, type RunOptions } from './run-command.ts'

let data: string

beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'crowdinfer-run-'))
})

afterAll(async () => {
  await rm(data, { recursive: true })
})

function optionsOf(change: Partial<RunOptions> = {}): RunOptions {
  return {
    stages: 2,
    greedy: true,
    seed: 0,
    temperature: 0.7,
    maxTokens: 6,
    raw: false,
    json: false,
    data,
    ...change,
  }
}

test('a raw prompt may spell the control tokens that the template would put in', async () => {
  const ignore = (): void => undefined
  const chat = await runPrompt('crowdtalk-0.3m', 'hi', optionsOf(), ignore)
  const spelled = '<|user|>hi<|end|><|assistant|>'
  const raw = await runPrompt('crowdtalk-0.3m', spelled, optionsOf({ raw: true }), ignore)
  expect(raw.promptIds.slice(-chat.promptIds.length + 1)).toEqual(chat.promptIds.slice(1))
})

test('what is written piece by piece is the answer', async () => {
  let written = ''
  const { text } = await runPrompt('crowdtalk-0.3m', 'hi', optionsOf(), (piece) => {
    written += piece
  })
  expect(written).toBe(text)
  expect(text).not.toBe('')
})

test('an answer that breaks off ends its line before the error is told', async () => {
  const written: string[] = []
  const running = runPrompt('crowdtalk-0.3m', 'hi', optionsOf(), (piece) => {
    written.push(piece)
    if (written.length === 2) throw new Error('broke')
  })
  await expect(running).rejects.toThrow('broke')
  expect(written.at(-1)).toBe('\n')
  expect(written).toHaveLength(3)
})

test('an empty prompt is refused before a model is opened', async () => {
  await expect(runPrompt('no-such-model', '', optionsOf(), () => undefined)).rejects.toMatchObject({
    code: 'bad-option',
  })
})
