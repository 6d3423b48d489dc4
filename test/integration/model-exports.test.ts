import { cp, readdir, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { EXPORTS, exportedModel, openModelCli, type ModelCli } from '../support/model-cli.ts'
import { publishedModel } from '../support/published-model.ts'

let cli: ModelCli

beforeEach(async () => {
  cli = await openModelCli({
    'crowd/talk': await publishedModel(),
    'crowd/exports': await exportedModel(),
  })
})
afterEach(() => cli.close())

test('an ONNX export is added by its directory or its file, and looked at by its name', async () => {
  const directory = join(EXPORTS, 'genai-llama-q4')
  expect((await cli.crowdinfer('add', directory, '--name', 'exported')).error).toBe('')
  const file = join(directory, 'onnx/model_q4.onnx')
  expect((await cli.crowdinfer('add', file, '--name', 'of-file')).error).toBe('')
  for (const name of ['exported', 'of-file']) {
    expect((await cli.crowdinfer('inspect', name)).text).toMatch(/layers +3, 32 wide/)
    expect((await cli.crowdinfer('verify', name)).error).toBe('')
  }
})

test('of the ONNX exports of a repository one is chosen by the words of their layout', async () => {
  const first = await cli.crowdinfer('add', 'crowd/exports')
  expect(first.error).toBe('')
  expect(first.text).toMatch(
    /^of the ONNX exports: fp32 \(onnx\/model\.onnx\); --dtype takes another: q4f16, q8\n/,
  )
  expect((await cli.crowdinfer('add', 'crowd/exports', '--dtype', 'fp32')).error).toBe('')
  expect(cli.hub.requests.filter(({ path }) => path.includes('q4f16'))).toEqual([])
  expect((await cli.listed()).map(({ name }) => name).slice(-2)).toEqual([
    'exports',
    'exports-fp32',
  ])
  const { error } = await cli.crowdinfer('add', 'crowd/exports', '--dtype', 'int8')
  expect(error).toMatch(
    /crowd\/exports has no int8\. It has: fp32 \(onnx\/model\.onnx\), q4f16 \(onnx\/model_q4f16\.onnx\), q8 \(/,
  )
  expect((await cli.crowdinfer('add', 'crowd/talk', '--dtype', 'int8')).error).toMatch(
    /holds no ONNX export, so there is no int8/,
  )
})

test.each(['genai-llama-q4', 'genai-qwen3-fp16', 'optimum-gpt2-fp32', 'optimum-qwen2-int8'])(
  'the export %s is inspected as it would be cut, and nothing is stored',
  async (name) => {
    const path = join(EXPORTS, name)
    const flags = ['--context', '32', '--json']
    const looked = await cli.crowdinfer('inspect', path, ...flags)
    expect(looked.error).toBe('')
    await expect(readdir(cli.data)).rejects.toThrow(/ENOENT/)
    await cli.crowdinfer('add', path, '--context', '32')
    const ready = await cli.crowdinfer('inspect', name, ...flags)
    const preview: unknown = JSON.parse(looked.text)
    expect(preview).toMatchObject({ name, state: 'preview', from: path, contextLength: 32 })
    expect(preview).toEqual({ ...(JSON.parse(ready.text) as object), state: 'preview' })
  },
)

test.each([
  ['genai-llama-fp32', 3 * 12_288 + 2 * 3_072],
  ['genai-llama-q4', 3 * 12_288 + 3_072],
  ['genai-qwen3-fp16', 2 * 12_288 + 3_072],
  ['optimum-qwen2-int8', 2 * 12_288 + 2 * 3_072],
])('%s has %i weights, however they are stored', async (name, weights) => {
  const path = join(EXPORTS, name)
  for (const flags of [[], ['--context', '8']]) {
    const { text } = await cli.crowdinfer('inspect', path, '--json', ...flags)
    expect(JSON.parse(text)).toMatchObject({ weights })
  }
  await cli.crowdinfer('add', path)
  expect(JSON.parse((await cli.crowdinfer('inspect', name, '--json')).text)).toMatchObject({
    weights,
  })
})

test('an ONNX file that cannot be cut, or is damaged, is told by inspect', async () => {
  const own = join(cli.folder, 'broken')
  await cp(join(EXPORTS, 'optimum-llama-q4'), own, { recursive: true })
  const file = join(own, 'onnx/model_q4.onnx')
  expect((await cli.crowdinfer('inspect', file)).text).toMatch(
    /not cut yet.*\n {2}architecture {2}Llama/,
  )
  expect((await cli.crowdinfer('inspect', own, '--dtype', 'fp16')).error).toMatch(
    /no fp16.*q4 \(onnx/,
  )
  expect((await cli.crowdinfer('inspect', own, '--context', '9999')).error).toMatch(/from 1 to \d+/)
  await truncate(file, 40_000)
  expect((await cli.crowdinfer('inspect', own)).error).not.toBe('')
})
