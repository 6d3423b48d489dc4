import { expect, test } from 'vitest'
import { chooseFiles, type Wish } from './choose-files.ts'
import type { HubListing } from './hub-files.ts'

function listingOf(...paths: readonly string[]): HubListing {
  return {
    repo: 'org/name',
    commit: '0'.repeat(40),
    files: paths.map((path) => ({ path, bytes: 5_000, hash: { kind: 'sha256', hex: '' } })),
  }
}

const SETTINGS = ['config.json', 'tokenizer.json', 'generation_config.json']
const ANY: Wish = { part: null, dtype: null }
const INDEX = JSON.stringify({
  weight_map: {
    a: 'model-00002-of-00002.safetensors',
    b: 'model-00001-of-00002.safetensors',
    c: 'model-00002-of-00002.safetensors',
  },
})

async function choose(listing: HubListing, wish: Partial<Wish> = {}, index = INDEX) {
  const chosen = await chooseFiles(listing, { ...ANY, ...wish }, () => Promise.resolve(index))
  const names = chosen.files.map(({ path }) => path)
  return {
    kind: chosen.kind,
    entry: chosen.entry,
    weights: names.filter((name) => !SETTINGS.includes(name)),
    names,
  }
}

test('safetensors go before everything else, with what stands beside them and nothing more', async () => {
  const listing = listingOf(
    'README.md',
    'model.safetensors',
    'pytorch_model.bin',
    'onnx/model.onnx',
    'x-Q4_0.gguf',
    ...SETTINGS,
  )
  expect(await choose(listing)).toEqual({
    kind: 'safetensors',
    entry: '',
    weights: ['model.safetensors'],
    names: [...SETTINGS, 'model.safetensors'],
  })
})

test('a model in several files brings those that its index names', async () => {
  const shards = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']
  const index = 'model.safetensors.index.json'
  const listing = listingOf(index, ...shards, 'consolidated.safetensors', ...SETTINGS)
  expect((await choose(listing)).weights).toEqual([index, ...shards])
  await expect(choose(listingOf(index, shards[0] ?? '', ...SETTINGS))).rejects.toThrow(
    /lacks model-00002-of-00002/,
  )
  for (const bad of [
    '',
    '[]',
    '{}',
    '{"weight_map": {}}',
    '{"weight_map": {"a": "../x.safetensors"}}',
  ])
    await expect(choose(listing, {}, bad)).rejects.toMatchObject({ code: 'model-invalid' })
})

const EXPORTS = [
  'onnx/model.onnx',
  'onnx/model_fp16.onnx',
  'onnx/model_quantized.onnx',
  'onnx/model_q4.onnx',
  'onnx/model_q4f16.onnx',
]

test.each([
  ['f32', 'onnx/model.onnx'],
  ['fp32', 'onnx/model.onnx'],
  ['f16', 'onnx/model_fp16.onnx'],
  ['q8', 'onnx/model_quantized.onnx'],
  ['q4', 'onnx/model_q4.onnx'],
  ['q4f16', 'onnx/model_q4f16.onnx'],
  [null, 'onnx/model_fp16.onnx'],
] as const)('of ONNX exports %s takes %s', async (dtype, entry) => {
  const listing = listingOf(...EXPORTS, ...SETTINGS)
  expect(await choose(listing, { dtype })).toMatchObject({ kind: 'onnx', entry, weights: [entry] })
})

test('a dtype that only exports have is taken of them, and one that is not there is told', async () => {
  const both = listingOf('model.safetensors', 'm-Q4_0.gguf', ...EXPORTS, ...SETTINGS)
  expect(await choose(both, { dtype: 'q4f16' })).toMatchObject({ entry: 'onnx/model_q4f16.onnx' })
  expect(await choose(both, { dtype: 'q4' })).toMatchObject({ kind: 'safetensors' })
  await expect(choose(both, { dtype: 'bnb4' })).rejects.toThrow(
    /^org\/name has no bnb4\. It has: fp32 \(onnx\/model\.onnx\), fp16 .*q8 \(onnx\/model_quantized/,
  )
  await expect(choose(listingOf(...EXPORTS), { dtype: 'fp16' })).rejects.toThrow(/no config\.json/)
  const named = { part: 'onnx/model_q4.onnx', dtype: 'fp16' } as const
  await expect(choose(both, named)).rejects.toThrow(
    /model_q4\.onnx is q4: it can't be read as fp16/,
  )
  const plain = listingOf('model.safetensors', 'm-Q4_0.gguf', ...SETTINGS)
  for (const wish of [{}, { part: 'Q4_0' }])
    await expect(choose(plain, { ...wish, dtype: 'int8' })).rejects.toThrow(
      /holds no ONNX export, so there is no int8; its weights can be kept as q4, q8, f16, f32/,
    )
})

test('the data of an ONNX export comes along, not that of another', async () => {
  const data = ['onnx/model_q4.onnx_data', 'onnx/model_q4.onnx_data_1']
  const listing = listingOf(
    'onnx/model_q4.onnx',
    ...data,
    'onnx/model_q4f16.onnx',
    'onnx/model_q4f16.onnx_data',
    ...SETTINGS,
  )
  expect((await choose(listing, { dtype: 'q4' })).weights).toEqual(['onnx/model_q4.onnx', ...data])
  const named = await choose(listing, { part: 'onnx/model_q4f16.onnx' })
  expect(named.weights).toEqual(['onnx/model_q4f16.onnx', 'onnx/model_q4f16.onnx_data'])
})

test('a renamed graph brings the data that it still names', async () => {
  const files = ['onnx/model_q4.onnx', 'onnx/model.onnx.data', 'other/model.onnx.data']
  const [graph = '', data = ''] = files
  expect((await choose(listingOf(...files, ...SETTINGS))).weights).toEqual([graph, data])
  const both = listingOf(...files, 'onnx/model.onnx', ...SETTINGS)
  expect((await choose(both, { dtype: 'q4' })).weights).toEqual([graph])
})

test('a GGUF file is chosen by its quantisation, its path, or by being the only one', async () => {
  const both = listingOf('m-Q4_K_M.gguf', 'm-IQ4_XS.gguf', 'm-q8_0.gguf', 'mmproj-f16.gguf')
  expect(await choose(both, { part: 'q4_k_m' })).toMatchObject({
    kind: 'gguf',
    entry: 'm-Q4_K_M.gguf',
  })
  expect(await choose(both, { part: 'm-q8_0.gguf' })).toMatchObject({ entry: 'm-q8_0.gguf' })
  expect(await choose(listingOf('m.gguf'))).toMatchObject({ entry: 'm.gguf', weights: ['m.gguf'] })
  await expect(choose(both)).rejects.toThrow(
    /several GGUF files: choose one, as in org\/name:Q4_K_M\. It has:.*m-q8_0\.gguf \(5 kB\)/,
  )
  await expect(choose(both, { part: 'Q5_0' })).rejects.toThrow(/no GGUF file "Q5_0"\. It has: /)
})

test('a split GGUF file brings all its parts, or is refused where one is missing', async () => {
  const parts = ['q/m-Q4_0-00001-of-00002.gguf', 'q/m-Q4_0-00002-of-00002.gguf']
  const [first = '', second = ''] = parts
  const listing = listingOf(second, first, 'm-Q8_0.gguf', ...SETTINGS)
  const chosen = { kind: 'gguf', entry: first, names: parts }
  expect(await choose(listing, { part: 'Q4_0' })).toMatchObject(chosen)
  expect(await choose(listing, { part: second })).toMatchObject(chosen)
  expect(await choose(listingOf(...parts))).toMatchObject(chosen)
  await expect(choose(listingOf(second))).rejects.toThrow(/1 of the 2 files/)
})

test.each([
  [
    listingOf('pytorch_model.bin', 'config.json'),
    /no weights that can be read.*pytorch_model\.bin \(5 kB\)/,
  ],
  [listingOf('model.safetensors'), /no config\.json/],
  [listingOf(), /It has: nothing/],
])('what is missing is told, with what there is', async (listing, text) => {
  await expect(choose(listing)).rejects.toMatchObject({ code: 'model-not-found' })
  await expect(choose(listing)).rejects.toThrow(text)
})

test('what has no tokenizer.json is refused before anything is fetched, with the way out', async () => {
  const slow = listingOf('config.json', 'model.safetensors', 'vocab.json', 'merges.txt')
  await expect(choose(slow)).rejects.toMatchObject({ code: 'model-invalid' })
  await expect(choose(slow)).rejects.toThrow(
    /org\/name has no tokenizer\.json\. It has vocab\.json, merges\.txt, .*save_pretrained\("name"\)/,
  )
  const onnx = listingOf('config.json', 'tokenizer.model', 'onnx/model.onnx')
  await expect(choose(onnx)).rejects.toThrow(/has no tokenizer\.json\. It has tokenizer\.model/)
})

test('weights in pickles are named, with the way out', async () => {
  const old = listingOf('pytorch_model.bin', ...SETTINGS)
  await expect(choose(old)).rejects.toThrow(/neither safetensors.*of which transformers makes/)
})
