import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtinDirectory, openModel } from './index.node.ts'

let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crowdinfer-open-'))
})

afterAll(async () => {
  await rm(directory, { recursive: true })
})

test('a model whose chat template is a file of its own speaks as one with it in the settings', async () => {
  const source = join(directory, 'separate')
  await cp(join(builtinDirectory(), 'crowdtalk-0.3m'), source, { recursive: true })
  const settingsFile = join(source, 'tokenizer_config.json')
  const settings = JSON.parse(await readFile(settingsFile, 'utf8')) as Record<string, unknown>
  const { chat_template: template, ...rest } = settings
  await writeFile(settingsFile, JSON.stringify(rest))
  await writeFile(join(source, 'chat_template.jinja'), String(template))

  const data = join(directory, 'data')
  const messages = [{ role: 'user', content: 'What is a ring?' }] as const
  const separate = await openModel(source, data)
  const usual = await openModel('crowdtalk-0.3m', data)
  expect(separate.tokenizer.encodeChat(messages)).toEqual(usual.tokenizer.encodeChat(messages))
})
