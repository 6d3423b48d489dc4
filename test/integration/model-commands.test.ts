import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { builtinDirectory } from '../../sdk/import/stored-model.node.ts'
import { addFirst } from '../../signaling/add-first.ts'
import { fakeFile, HUB_TOKEN, type FakeFile } from '../support/hub-server.ts'
import { openModelCli, type ModelCli } from '../support/model-cli.ts'
import { publishedModel } from '../support/published-model.ts'

let cli: ModelCli

beforeEach(async () => {
  const model = await publishedModel()
  const mamba = JSON.stringify({ model_type: 'mamba', architectures: ['MambaForCausalLM'] })
  cli = await openModelCli({
    'crowd/talk': model,
    'crowd/gated': { ...model, access: 'gated' },
    'crowd/quants': {
      commit: model.commit,
      files: { 'tiny-Q4_0.gguf': await ggufFile('q4_0'), 'tiny-Q8_0.gguf': await ggufFile('q8_0') },
    },
    'crowd/mamba-gguf': {
      commit: model.commit,
      files: { 'tiny.gguf': await ggufFile('q4_0', 'mambo') },
    },
    'crowd/odd': { ...model, files: { ...model.files, 'config.json': fakeFile(mamba) } },
  })
})
afterEach(() => cli.close())

/** @param architecture of five letters, put in the place of llama */
async function ggufFile(kind: string, architecture = 'llama'): Promise<FakeFile> {
  const path = join(import.meta.dirname, `../fixtures/reference/gguf/llama-${kind}/model.gguf`)
  const bytes = await readFile(path)
  const key = 'general.architecture'
  // A text: its type in 4 bytes, its length in 8.
  bytes.write(architecture, bytes.indexOf(key) + key.length + 12)
  return fakeFile(bytes, true)
}

test('a model of the hub is added, listed, run, checked and removed', async () => {
  const added = await cli.crowdinfer('add', 'crowd/talk')
  expect(added.error).toBe('')
  expect(added.text).toMatch(/^crowd\/talk from 127\.0\.0\.1:\d+: 562 kB to download, .* as talk\n/)
  expect(added.text).toMatch(/downloading: 100 %.*\n(?:cutting: .*\n)+talk is ready/)
  // What was downloaded is gone, and so is its folder.
  expect(await readdir(join(cli.data, 'downloads'))).toEqual([])

  expect(await cli.answer('talk')).toBe(await cli.answer('crowdtalk-0.3m'))
  expect(await cli.answer('crowd/talk')).toBe(await cli.answer('talk'))
  expect((await cli.listed()).find(({ name }) => name === 'talk')).toMatchObject({
    dtype: 'f16',
    problem: null,
  })
  expect((await cli.crowdinfer('list')).text).toMatch(
    /^talk +f16 +584 kB +512 +crowd\/talk@c0ffee00$/m,
  )
  expect((await cli.crowdinfer('verify', 'talk')).text).toMatch(/talk is sound: 14 pieces/)

  cli.hub.requests.length = 0
  expect((await cli.crowdinfer('add', 'crowd/talk')).text).toMatch(/is here already/)
  expect(cli.hub.requests.some(({ server }) => server === 'storage')).toBe(false)

  expect((await cli.crowdinfer('remove', 'talk')).error).toMatch(/say --yes/)
  expect((await cli.crowdinfer('remove', 'talk', '--yes')).text).toMatch(
    /Removed talk: 5\d\d kB freed/,
  )
  expect(await readdir(join(cli.data, 'models'))).toEqual(['crowdtalk-0.3m'])
  await expect(cli.answer('talk')).rejects.toThrow(/no model, directory or model file "talk"/)
})

test('dtype, context, name and revision are as asked, several forms of a model stand side by side', async () => {
  const flags = ['--dtype', 'q4', '--context', '256', '--revision', 'main']
  expect((await cli.crowdinfer('add', 'crowd/talk', ...flags)).error).toBe('')
  expect((await cli.crowdinfer('add', 'crowd/talk', '--name', 'mine')).error).toBe('')
  expect((await cli.listed()).map(({ name, dtype }) => [name, dtype]).slice(-2)).toEqual([
    ['mine', 'f16'],
    ['talk-q4', 'q4'],
  ])
  const { text } = await cli.crowdinfer('inspect', 'talk-q4', '--json')
  expect(JSON.parse(text)).toMatchObject({
    state: 'ready',
    dtype: 'q4',
    contextLength: 256,
    chatTemplate: true,
    tiedEmbedding: true,
    experts: 0,
  })
  // The id alone doesn't say which.
  await expect(cli.answer('crowd/talk')).rejects.toThrow(/added as mine, talk-q4: give one/)
  const clash = await cli.crowdinfer('add', 'crowd/talk', '--name', 'mine', '--dtype', 'q8')
  expect(clash.error).toMatch(/there is a model mine already/)
})

test('inspect plans a model of the hub without its weights', async () => {
  const { text } = await cli.crowdinfer('inspect', 'crowd/talk', '--context', '128')
  expect(cli.hub.requests.some(({ server }) => server === 'storage')).toBe(false)
  expect(text).toMatch(/^ {2}architecture {2}LlamaForCausalLM$/m)
  expect(text).toMatch(/^ {2}cache {9}1\.02 kB a token, 131 kB at 128 tokens$/m)
  expect(text).toMatch(/^ {2}layers 1–4 +92\.7 kB/m)
  expect(text).toMatch(/^ {2}1 GB +1 +1$/m)
})

test('inspect plans of a GGUF file what add makes of it', async () => {
  for (const kind of ['q4_0', 'q8_0', 'f16']) {
    const path = join(import.meta.dirname, `../fixtures/reference/gguf/llama-${kind}/model.gguf`)
    const preview = await cli.crowdinfer('inspect', path, '--json')
    expect((await cli.crowdinfer('add', path, '--name', kind)).error).toBe('')
    const ready = JSON.parse((await cli.crowdinfer('inspect', kind, '--json')).text) as object
    expect(JSON.parse(preview.text)).toEqual({ ...ready, name: 'model', state: 'preview' })
  }
})

test('inspect plans a GGUF file of the hub by its header, and add refuses what it tells', async () => {
  const read = async (model: string): Promise<Record<string, unknown>> => {
    const { text, error } = await cli.crowdinfer('inspect', model, '--json')
    expect(error).toBe('')
    // Cast: the command's own JSON.
    return JSON.parse(text) as Record<string, unknown>
  }
  const far = await read('crowd/quants:Q4_0')
  expect((await cli.crowdinfer('add', 'crowd/quants:Q4_0')).error).toBe('')
  expect(far).toMatchObject({ ...(await read('quants')), state: 'preview', name: 'crowd/quants' })

  cli.hub.requests.length = 0
  const refused = await cli.crowdinfer('add', 'crowd/mamba-gguf')
  expect(refused.error).toMatch(/tiny\.gguf: the architecture "mambo" is not supported in GGUF/)
  expect(refused.error).not.toMatch(/the download/)
  expect(await readdir(join(cli.data, 'downloads')).catch(() => [])).toEqual([])
})

test('what is impossible is told before the download', async () => {
  expect((await cli.crowdinfer('add', 'crowd/odd')).error).toMatch(/MambaForCausalLM/)
  expect((await cli.crowdinfer('add', 'crowd/none')).error).toMatch(/no model crowd\/none/)
  expect((await cli.crowdinfer('add', 'crowd/gated')).error).toMatch(/is gated/)
  expect((await cli.crowdinfer('add', 'crowd/talk', '--context', '4096')).error).toMatch(/4096/)
  expect((await cli.crowdinfer('add', 'crowd/talk', '--name', 'crowdtalk-0.3m')).error).toMatch(
    /built-in/,
  )
  expect((await cli.crowdinfer('add', 'crowd/talk', '--name', '../x')).error).toMatch(/may hold/)
  expect((await cli.crowdinfer('add', 'nothing-here')).error).toMatch(/no directory or model file/)
  expect((await cli.crowdinfer('add', join(builtinDirectory(), 'none'))).error).toMatch(
    /no directory/,
  )
  expect((await cli.crowdinfer('remove', 'crowdtalk-0.3m', '--yes')).error).toMatch(/built in/)
  expect((await cli.crowdinfer('add', 'crowd/talk', '--dtype', 'q5')).error).toMatch(
    /q4, q8, f16, f32/,
  )
  expect(cli.hub.requests.some(({ server }) => server === 'storage')).toBe(false)
})

test('the token is read from the environment, and is in nothing that is kept', async () => {
  const { error, text } = await cli.runWith({ HF_TOKEN: HUB_TOKEN }, 'add', 'crowd/gated')
  expect(error).toBe('')
  expect(text).not.toContain(HUB_TOKEN)
  for (const name of await readdir(cli.data, { recursive: true })) {
    const path = join(cli.data, name)
    if ((await stat(path)).isFile()) expect(await readFile(path, 'latin1')).not.toContain(HUB_TOKEN)
  }
})

test('a killed download goes on, and a damaged model is found, told and repaired', async () => {
  cli.hub.fault(({ server }) => server === 'storage', { kind: 'truncated' }, 4)
  expect((await cli.crowdinfer('add', 'crowd/talk')).error).toMatch(/hung up/)
  expect((await cli.listed()).slice(2)).toMatchObject([{ name: 'crowd/talk', kind: 'download' }])
  const again = await cli.crowdinfer('add', 'crowd/talk', '--keep-source')
  expect(again.error).toBe('')
  expect(again.text).toMatch(/The download is kept in/)

  const pieces = join(cli.data, 'models', 'talk', 'pieces')
  const [first = '', second = ''] = await readdir(pieces)
  const bytes = await readFile(join(pieces, first))
  bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0)
  await writeFile(join(pieces, first), bytes)
  await rm(join(pieces, second))
  const checked = await cli.crowdinfer('verify', 'talk')
  expect(checked.error).toMatch(/2 of 14 pieces of talk are damaged: crowdinfer model remove talk/)
  expect(checked.text).toMatch(new RegExp(`^${first.slice(0, 12)}  wrong bytes  \\w`, 'm'))
  expect(checked.text).toMatch(new RegExp(`^${second.slice(0, 12)}  missing  \\w`, 'm'))
  expect((await cli.listed()).at(-1)?.problem).toMatch(/lost pieces/)
  await expect(cli.answer('talk')).rejects.toThrow(/lost pieces/)

  await cli.crowdinfer('remove', 'talk', '--yes')
  // The kept download went with it.
  expect(await readdir(join(cli.data, 'downloads'))).toEqual([])
  await cli.crowdinfer('add', 'crowd/talk')
  expect(await cli.answer('talk')).toBe(await cli.answer('crowdtalk-0.3m'))
})

test('verify says of a model without blocks why it has none', async () => {
  expect((await cli.crowdinfer('verify', 'nobody')).error).toMatch(/No model nobody was added/)
  expect((await cli.crowdinfer('verify', 'crowdtalk-0.3m')).error).toMatch(
    /crowdtalk-0\.3m is built in, and nothing of it is stored yet/,
  )
})

test('a directory is added without a hub and stays where it is; its name is safe from others', async () => {
  await cli.hub.close()
  const own = join(cli.folder, 'my model')
  await cp(join(builtinDirectory(), 'crowdtalk-0.3m'), own, { recursive: true })
  expect((await cli.crowdinfer('add', own)).text).toMatch(/my-model is ready/)
  expect(await readdir(own)).toContain('model.safetensors')
  // Another directory of the same name does not touch it.
  const other = join(cli.folder, 'elsewhere', 'my-model')
  await mkdir(join(cli.folder, 'elsewhere'))
  await cp(join(builtinDirectory(), 'crowdtalk-2.6m'), other, { recursive: true })
  const text = await cli.answer(other)
  await rm(own, { recursive: true })
  expect(await cli.answer('my-model')).toBe(await cli.answer('crowdtalk-0.3m'))
  expect(text).toBe(await cli.answer('crowdtalk-2.6m'))
  expect((await cli.crowdinfer('add', other)).error).toMatch(/there is a model my-model already/)
})

test('of several GGUF files one is downloaded, cut and known by its quantisation', async () => {
  expect((await cli.crowdinfer('add', 'crowd/quants')).error).toMatch(
    /choose one, as in crowd\/quants:Q4_0/,
  )
  const added = await cli.crowdinfer('add', 'crowd/quants:Q8_0', '--name', 'tiny')
  expect(added.error).toBe('')
  expect(cli.hub.requests.filter(({ path }) => path.includes('Q4_0'))).toEqual([])
  const { text } = await cli.crowdinfer('inspect', 'tiny', '--json')
  expect(JSON.parse(text)).toMatchObject({
    from: 'crowd/quants@c0ffee00:Q8_0',
    architecture: 'LlamaForCausalLM',
    experts: 0,
  })
  // A file on the disk is planned without being cut.
  const path = join(import.meta.dirname, '../fixtures/reference/gguf/llama-q8_0/model.gguf')
  expect((await cli.crowdinfer('inspect', path)).text).toMatch(
    /planned from its config and headers/,
  )
})

test('a host that is started with an id adds it once', async () => {
  let text = ''
  const output = { write: (part: string) => (text += part) }
  const context = { output, environment: { HF_ENDPOINT: cli.hub.url.href } }
  await addFirst('crowd/talk', cli.data, context)
  expect(text).toMatch(/talk is ready/)
  cli.hub.requests.length = 0
  await addFirst('crowd/talk', cli.data, context)
  await addFirst('crowdtalk-0.3m', cli.data, context)
  expect(cli.hub.requests).toEqual([])
  expect(await cli.answer('crowd/talk')).not.toBe('')
})
