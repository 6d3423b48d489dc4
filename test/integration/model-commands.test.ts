import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { builtinDirectory } from '../../sdk/import/stored-model.node.ts'
import { addFirst } from '../../signaling/add-first.ts'
import { addModelCommands } from '../../signaling/model-cli.ts'
import { createModelCommands } from '../../signaling/model-commands.ts'
import { runCli } from '../../signaling/cli.ts'
import { runPrompt, type RunOptions } from '../../signaling/run-command.ts'
import { COMMIT } from '../support/hub-kit.ts'
import {
  fakeFile,
  HUB_TOKEN,
  startHubServer,
  type FakeFile,
  type FakeRepo,
  type HubServer,
} from '../support/hub-server.ts'
import { publishedModel } from '../support/published-model.ts'

let hub: HubServer
let folder: string
let data: string

beforeEach(async () => {
  const model = await publishedModel()
  const mamba = JSON.stringify({ model_type: 'mamba', architectures: ['MambaForCausalLM'] })
  hub = await startHubServer({
    'crowd/exports': await exportedModel(),
    'crowd/talk': model,
    'crowd/gated': { ...model, access: 'gated' },
    'crowd/quants': {
      commit: model.commit,
      files: { 'tiny-Q4_0.gguf': await ggufFile('q4_0'), 'tiny-Q8_0.gguf': await ggufFile('q8_0') },
    },
    'crowd/odd': { ...model, files: { ...model.files, 'config.json': fakeFile(mamba) } },
  })
  folder = await mkdtemp(join(tmpdir(), 'crowdinfer-models-'))
  data = join(folder, 'data')
})

afterEach(async () => {
  await hub.close()
  await rm(folder, { recursive: true, force: true })
})

async function ggufFile(kind: string): Promise<FakeFile> {
  const path = join(import.meta.dirname, `../fixtures/reference/gguf/llama-${kind}/model.gguf`)
  return fakeFile(await readFile(path), true)
}

const EXPORTS = fileURLToPath(new URL('../fixtures/reference/onnx/', import.meta.url))

/** One model in the layout of transformers.js, in two dtypes, with the data beside the graph. */
async function exportedModel(): Promise<FakeRepo> {
  const read = (path: string): Promise<Buffer> => readFile(join(EXPORTS, path))
  const files: Record<string, FakeFile> = {}
  for (const name of ['config.json', 'tokenizer.json'])
    files[name] = fakeFile(await read(`genai-llama-fp32/${name}`))
  files['onnx/model.onnx'] = fakeFile(await read('genai-llama-fp32/onnx/model.onnx'), true)
  files['onnx/model.onnx.data'] = fakeFile(
    await read('genai-llama-fp32/onnx/model.onnx.data'),
    true,
  )
  files['onnx/model_q4f16.onnx'] = fakeFile(
    await read('optimum-gptneox-q4f16/onnx/model_q4f16.onnx'),
    true,
  )
  return { commit: COMMIT, files }
}

type Run = { readonly text: string; readonly error: string }

/** One command line; what it printed, and the message it failed with. */
async function crowdinfer(...args: readonly string[]): Promise<Run> {
  return runWith({}, ...args)
}

async function runWith(
  environment: Record<string, string>,
  ...args: readonly string[]
): Promise<Run> {
  const output = new PassThrough()
  let text = ''
  output.setEncoding('utf8').on('data', (part: string) => (text += part))
  const input = new PassThrough()
  const variables = { HF_ENDPOINT: hub.url.href, CROWDINFER_DATA: data, ...environment }
  const commands = createModelCommands({ environment: variables, output, input })
  const add = (program: Parameters<typeof addModelCommands>[0]): void =>
    addModelCommands(program, () => Promise.resolve(commands))
  const actions = { start: () => Promise.reject(new Error('start')), commands: [add] }
  try {
    await runCli(['model', ...args], actions, { version: '0', environment: variables })
    return { text, error: '' }
  } catch (thrown) {
    return { text, error: thrown instanceof Error ? thrown.message : String(thrown) }
  }
}

async function listed(): Promise<{ name: string; dtype: string | null; problem: string | null }[]> {
  const { text } = await crowdinfer('list', '--json')
  // Our own output.
  return JSON.parse(text) as { name: string; dtype: string | null; problem: string | null }[]
}

const OPTIONS: RunOptions = {
  stages: 2,
  greedy: true,
  seed: 0,
  temperature: 0.7,
  maxTokens: 16,
  raw: false,
  json: false,
  data: '',
}

const answer = async (model: string): Promise<string> =>
  (await runPrompt(model, 'What is a ring?', { ...OPTIONS, data }, () => undefined)).text

test('a model of the hub is added, listed, run, checked and removed', async () => {
  const added = await crowdinfer('add', 'crowd/talk')
  expect(added.error).toBe('')
  expect(added.text).toMatch(/^crowd\/talk from 127\.0\.0\.1:\d+: 562 kB to download, .* as talk\n/)
  expect(added.text).toMatch(/downloading: 100 %.*\n(?:cutting: .*\n)+talk is ready/)
  // What was downloaded is gone, and so is its folder.
  expect(await readdir(join(data, 'downloads'))).toEqual([])

  expect(await answer('talk')).toBe(await answer('crowdtalk-0.3m'))
  expect(await answer('crowd/talk')).toBe(await answer('talk'))
  expect((await listed()).find(({ name }) => name === 'talk')).toMatchObject({
    dtype: 'f16',
    problem: null,
  })
  expect((await crowdinfer('list')).text).toMatch(/^talk +f16 +584 kB +512 +crowd\/talk@c0ffee00$/m)
  expect((await crowdinfer('verify', 'talk')).text).toMatch(/talk is sound: 14 pieces/)

  hub.requests.length = 0
  expect((await crowdinfer('add', 'crowd/talk')).text).toMatch(/is here already/)
  expect(hub.requests.some(({ server }) => server === 'storage')).toBe(false)

  expect((await crowdinfer('remove', 'talk')).error).toMatch(/say --yes/)
  expect((await crowdinfer('remove', 'talk', '--yes')).text).toMatch(/Removed talk: 5\d\d kB freed/)
  expect(await readdir(join(data, 'models'))).toEqual(['crowdtalk-0.3m'])
  await expect(answer('talk')).rejects.toThrow(/no model, directory or model file "talk"/)
})

test('dtype, context, name and revision are as asked, several forms of a model stand side by side', async () => {
  const flags = ['--dtype', 'q4', '--context', '256', '--revision', 'main']
  expect((await crowdinfer('add', 'crowd/talk', ...flags)).error).toBe('')
  expect((await crowdinfer('add', 'crowd/talk', '--name', 'mine')).error).toBe('')
  expect((await listed()).map(({ name, dtype }) => [name, dtype]).slice(-2)).toEqual([
    ['mine', 'f16'],
    ['talk-q4', 'q4'],
  ])
  const { text } = await crowdinfer('inspect', 'talk-q4', '--json')
  expect(JSON.parse(text)).toMatchObject({
    state: 'ready',
    dtype: 'q4',
    contextLength: 256,
    chatTemplate: true,
    tiedEmbedding: true,
    experts: 0,
  })
  // The id alone doesn't say which.
  await expect(answer('crowd/talk')).rejects.toThrow(/added as mine, talk-q4: give one/)
  const clash = await crowdinfer('add', 'crowd/talk', '--name', 'mine', '--dtype', 'q8')
  expect(clash.error).toMatch(/there is a model mine already/)
})

test('inspect plans a model of the hub without its weights', async () => {
  const { text } = await crowdinfer('inspect', 'crowd/talk', '--context', '128')
  expect(hub.requests.some(({ server }) => server === 'storage')).toBe(false)
  expect(text).toMatch(/^ {2}architecture {2}LlamaForCausalLM$/m)
  expect(text).toMatch(/^ {2}cache {9}1\.02 kB a token, 131 kB at 128 tokens$/m)
  expect(text).toMatch(/^ {2}layers 1–4 +92\.7 kB/m)
  expect(text).toMatch(/^ {2}1 GB +1 +1$/m)
})

test('what is impossible is told before the download', async () => {
  expect((await crowdinfer('add', 'crowd/odd')).error).toMatch(/MambaForCausalLM/)
  expect((await crowdinfer('add', 'crowd/none')).error).toMatch(/no model crowd\/none/)
  expect((await crowdinfer('add', 'crowd/gated')).error).toMatch(/is gated/)
  expect((await crowdinfer('add', 'crowd/talk', '--context', '4096')).error).toMatch(/4096/)
  expect((await crowdinfer('add', 'crowd/talk', '--name', 'crowdtalk-0.3m')).error).toMatch(
    /built-in/,
  )
  expect((await crowdinfer('add', 'crowd/talk', '--name', '../x')).error).toMatch(/may hold/)
  expect((await crowdinfer('add', 'nothing-here')).error).toMatch(/no directory or model file/)
  expect((await crowdinfer('add', join(builtinDirectory(), 'none'))).error).toMatch(/no directory/)
  expect((await crowdinfer('remove', 'crowdtalk-0.3m', '--yes')).error).toMatch(/built in/)
  expect((await crowdinfer('add', 'crowd/talk', '--dtype', 'q5')).error).toMatch(/q4, q8, f16, f32/)
  expect(hub.requests.some(({ server }) => server === 'storage')).toBe(false)
})

test('the token is read from the environment, and is in nothing that is kept', async () => {
  const { error, text } = await runWith({ HF_TOKEN: HUB_TOKEN }, 'add', 'crowd/gated')
  expect(error).toBe('')
  expect(text).not.toContain(HUB_TOKEN)
  for (const name of await readdir(data, { recursive: true })) {
    const path = join(data, name)
    if ((await stat(path)).isFile()) expect(await readFile(path, 'latin1')).not.toContain(HUB_TOKEN)
  }
})

test('a killed download goes on, and a damaged model is found, told and repaired', async () => {
  hub.fault(({ server }) => server === 'storage', { kind: 'truncated' }, 4)
  expect((await crowdinfer('add', 'crowd/talk')).error).toMatch(/hung up/)
  expect(await listed()).toHaveLength(2)
  const again = await crowdinfer('add', 'crowd/talk', '--keep-source')
  expect(again.error).toBe('')
  expect(again.text).toMatch(/The download is kept in/)

  const pieces = join(data, 'models', 'talk', 'pieces')
  const [first = '', second = ''] = await readdir(pieces)
  const bytes = await readFile(join(pieces, first))
  bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0)
  await writeFile(join(pieces, first), bytes)
  await rm(join(pieces, second))
  const checked = await crowdinfer('verify', 'talk')
  expect(checked.error).toMatch(/2 of 14 pieces of talk are damaged: crowdinfer model remove talk/)
  expect(checked.text).toMatch(new RegExp(`^${first.slice(0, 12)}  wrong bytes  \\w`, 'm'))
  expect(checked.text).toMatch(new RegExp(`^${second.slice(0, 12)}  missing  \\w`, 'm'))
  expect((await listed()).at(-1)?.problem).toMatch(/lost pieces/)
  await expect(answer('talk')).rejects.toThrow(/lost pieces/)

  await crowdinfer('remove', 'talk', '--yes')
  // The kept download went with it.
  expect(await readdir(join(data, 'downloads'))).toEqual([])
  await crowdinfer('add', 'crowd/talk')
  expect(await answer('talk')).toBe(await answer('crowdtalk-0.3m'))
})

test('a directory is added without a hub and stays where it is; its name is safe from others', async () => {
  await hub.close()
  const own = join(folder, 'my model')
  await cp(join(builtinDirectory(), 'crowdtalk-0.3m'), own, { recursive: true })
  expect((await crowdinfer('add', own)).text).toMatch(/my-model is ready/)
  expect(await readdir(own)).toContain('model.safetensors')
  // Another directory of the same name does not touch it.
  const other = join(folder, 'elsewhere', 'my-model')
  await mkdir(join(folder, 'elsewhere'))
  await cp(join(builtinDirectory(), 'crowdtalk-2.6m'), other, { recursive: true })
  const text = await answer(other)
  await rm(own, { recursive: true })
  expect(await answer('my-model')).toBe(await answer('crowdtalk-0.3m'))
  expect(text).toBe(await answer('crowdtalk-2.6m'))
  expect((await crowdinfer('add', other)).error).toMatch(/there is a model my-model already/)
})

test('of several GGUF files one is downloaded, cut and known by its quantisation', async () => {
  expect((await crowdinfer('add', 'crowd/quants')).error).toMatch(
    /choose one, as in crowd\/quants:Q4_0/,
  )
  const added = await crowdinfer('add', 'crowd/quants:Q8_0', '--name', 'tiny')
  expect(added.error).toBe('')
  expect(hub.requests.filter(({ path }) => path.includes('Q4_0'))).toEqual([])
  const { text } = await crowdinfer('inspect', 'tiny', '--json')
  expect(JSON.parse(text)).toMatchObject({
    from: 'crowd/quants@c0ffee00:Q8_0',
    architecture: 'LlamaForCausalLM',
    experts: 0,
  })
  // A file on the disk is planned without being cut.
  const path = join(import.meta.dirname, '../fixtures/reference/gguf/llama-q8_0/model.gguf')
  expect((await crowdinfer('inspect', path)).text).toMatch(/planned from its config and headers/)
})

test('a host that is started with an id adds it once', async () => {
  let text = ''
  const output = { write: (part: string) => (text += part) }
  const context = { output, environment: { HF_ENDPOINT: hub.url.href } }
  await addFirst('crowd/talk', data, context)
  expect(text).toMatch(/talk is ready/)
  hub.requests.length = 0
  await addFirst('crowd/talk', data, context)
  await addFirst('crowdtalk-0.3m', data, context)
  expect(hub.requests).toEqual([])
  expect(await answer('crowd/talk')).not.toBe('')
})

test('an ONNX export is added by its directory or its file, and looked at by its name', async () => {
  const directory = join(EXPORTS, 'genai-llama-q4')
  expect((await crowdinfer('add', directory, '--name', 'exported')).error).toBe('')
  const file = join(directory, 'onnx/model_q4.onnx')
  expect((await crowdinfer('add', file, '--name', 'of-file')).error).toBe('')
  for (const name of ['exported', 'of-file']) {
    expect((await crowdinfer('inspect', name)).text).toMatch(/layers +3, 32 wide/)
    expect((await crowdinfer('verify', name)).error).toBe('')
  }
})

test('of the ONNX exports of a repository one is chosen by the words of their layout', async () => {
  const first = await crowdinfer('add', 'crowd/exports')
  expect(first.error).toBe('')
  expect(first.text).toMatch(
    /^of the ONNX exports: fp32 \(onnx\/model\.onnx\); --dtype takes another: q4f16\n/,
  )
  expect((await crowdinfer('add', 'crowd/exports', '--dtype', 'fp32')).error).toBe('')
  expect(hub.requests.filter(({ path }) => path.includes('q4f16'))).toEqual([])
  expect((await listed()).map(({ name }) => name).slice(-2)).toEqual(['exports', 'exports-fp32'])
  const { error } = await crowdinfer('add', 'crowd/exports', '--dtype', 'int8')
  expect(error).toMatch(
    /crowd\/exports has no int8\. It has: fp32 \(onnx\/model\.onnx\), q4f16 \(onnx\/model_q4f16\.onnx\)/,
  )
  expect((await crowdinfer('add', 'crowd/talk', '--dtype', 'int8')).error).toMatch(
    /holds no ONNX export, so there is no int8/,
  )
})

test.each(['genai-llama-q4', 'genai-qwen3-fp16', 'optimum-gpt2-fp32', 'optimum-qwen2-int8'])(
  'the export %s is inspected as it would be cut, and nothing is stored',
  async (name) => {
    const path = join(EXPORTS, name)
    const flags = ['--context', '32', '--json']
    const looked = await crowdinfer('inspect', path, ...flags)
    expect(looked.error).toBe('')
    await expect(readdir(data)).rejects.toThrow(/ENOENT/)
    await crowdinfer('add', path, '--context', '32')
    const ready = await crowdinfer('inspect', name, ...flags)
    const preview: unknown = JSON.parse(looked.text)
    expect(preview).toMatchObject({ name, state: 'preview', from: path, contextLength: 32 })
    expect(preview).toEqual({ ...(JSON.parse(ready.text) as object), state: 'preview' })
  },
)

test('an ONNX file that cannot be cut, or is damaged, is told by inspect', async () => {
  const own = join(folder, 'broken')
  await cp(join(EXPORTS, 'optimum-llama-q4'), own, { recursive: true })
  const file = join(own, 'onnx/model_q4.onnx')
  expect((await crowdinfer('inspect', file)).text).toMatch(
    /not cut yet.*\n {2}architecture {2}Llama/,
  )
  expect((await crowdinfer('inspect', own, '--dtype', 'fp16')).error).toMatch(/no fp16.*q4 \(onnx/)
  expect((await crowdinfer('inspect', own, '--context', '9999')).error).toMatch(/from 1 to \d+/)
  await truncate(file, 40_000)
  expect((await crowdinfer('inspect', own)).error).not.toBe('')
})
