import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  randomTensors,
  tensorShapes,
  TINY_CONFIG,
  tinyLlama,
  writeSafetensors,
} from '../../test/support/models.ts'
import { CrowdError } from '../core/errors.ts'
import type { ModelId } from '../core/ids.ts'
import { blockPieces } from '../core/model/manifest.ts'
import { parseManifest } from '../core/model/parse-manifest.ts'
import { importModel } from './import-model.node.ts'
import { readBlock, readManifest, readPiece } from './model-store.node.ts'
import { resolveModel } from './resolve-model.node.ts'

const config = tinyLlama()

let root: string
let source: string
let store: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'crowdinfer-import-'))
  source = join(root, 'tiny')
  store = join(root, 'store')
  await mkdir(source)
  await put('config.json', JSON.stringify(TINY_CONFIG))
  await put('tokenizer.json', '{"version":"1.0"}')
  await put('generation_config.json', '{"eos_token_id":[5,6]}')
  await put('model.safetensors', writeSafetensors(config, randomTensors(config), 'f16'))
})
afterEach(() => rm(root, { recursive: true, force: true }))

function put(name: string, bytes: string | Uint8Array): Promise<void> {
  return writeFile(join(source, name), bytes)
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'accepted',
    (error: unknown) =>
      error instanceof CrowdError ? `${error.code}: ${error.message}` : String(error),
  )
}

describe('importModel', () => {
  it('writes a manifest and every piece that it names', async () => {
    const manifest = await importModel(source, store)
    expect(await readManifest(store)).toEqual(manifest)
    expect(manifest).toMatchObject({
      id: 'tiny',
      dtype: 'f16',
      layerCount: 2,
      contextLength: 64,
      eosTokenIds: [5, 6],
    })
    expect(Object.keys(manifest.files)).toEqual(['tokenizer.json', 'generation_config.json'])
    for (const block of manifest.blocks) {
      for (const piece of blockPieces(block)) {
        expect((await readPiece(store, piece.sha256)).length).toBe(piece.bytes)
      }
    }
    const { graph, data } = await readBlock(store, manifest, 1)
    expect(graph?.length).toBe(manifest.blocks[1]!.graph!.bytes)
    expect(data.length).toBe(manifest.blocks[1]!.dataBytes)
  })

  it('shares the pieces of a tied table between embedding and head', async () => {
    const { blocks } = await importModel(source, store)
    expect(blocks[3]!.data.slice(0, -1)).toEqual(blocks[0]!.data)
    expect(blocks[3]!.data.at(-1)!.bytes).toBe(64 * 4)
  })

  it('gives the same manifest from the same bytes, in another place and at another time', async () => {
    const first = await importModel(source, store)
    const later = new Date(Date.now() + 60_000)
    await utimes(join(source, 'model.safetensors'), later, later)
    expect(await importModel(source, join(root, 'other'))).toEqual(first)
  })

  it('does nothing when the store is up to date', async () => {
    await importModel(source, store)
    const before = await stat(join(store, 'manifest.json'))
    await importModel(source, store)
    expect((await stat(join(store, 'manifest.json'))).mtimeMs).toBe(before.mtimeMs)
  })

  it('imports anew, and drops old pieces, when the source or an option changes', async () => {
    const first = await importModel(source, store)
    await put('model.safetensors', writeSafetensors(config, randomTensors(config, 2), 'f16'))
    const second = await importModel(source, store)
    expect(second.revision).not.toBe(first.revision)
    const third = await importModel(source, store, { dtype: 'q4', contextLength: 32 })
    expect(third).toMatchObject({ dtype: 'q4', contextLength: 32 })
    const pieces = [...third.blocks.flatMap(blockPieces), ...Object.values(third.files)]
    expect((await readdir(join(store, 'pieces'))).toSorted()).toEqual(
      [...new Set(pieces.map((piece) => piece.sha256))].toSorted(),
    )
  })

  it('heals a store that lost a piece or holds a damaged one', async () => {
    const manifest = await importModel(source, store)
    const hash = manifest.blocks[1]!.data[0]!.sha256
    const path = join(store, 'pieces', hash)
    await writeFile(path, 'damaged')
    expect(await refusal(readPiece(store, hash))).toMatch(/^piece-corrupt/)
    await importModel(source, store)
    expect((await readPiece(store, hash)).length).toBe(manifest.blocks[1]!.dataBytes)
    await rm(path)
    expect(await refusal(readPiece(store, hash))).toMatch(/^piece-unavailable/)
    await importModel(source, store)
    expect((await readPiece(store, hash)).length).toBe(manifest.blocks[1]!.dataBytes)
  })

  it('reads weights that are split over several files', async () => {
    const whole = await importModel(source, store)
    const tensors = [...randomTensors(config)]
    const files = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'] as const
    const halves = [tensors.slice(0, 9), tensors.slice(9)]
    await rm(join(source, 'model.safetensors'))
    for (const [i, file] of files.entries()) {
      await put(file, writeSafetensors(config, new Map(halves[i]), 'f16'))
    }
    const map = tensors.map(([name], i) => [name, files[i < 9 ? 0 : 1]] as const)
    const index = { metadata: {}, weight_map: Object.fromEntries(map) }
    await put('model.safetensors.index.json', JSON.stringify(index))
    expect((await importModel(source, join(root, 'sharded'))).blocks).toEqual(whole.blocks)
  })

  it.each([
    ['llama-f32', 'f32'],
    ['llama-bf16', 'f16'],
    ['llama-q8_0', 'q8'],
    ['llama-q4_0', 'q4'],
    // Held exactly by none of ours, and small.
    ['llama-q4_1', 'f16'],
    ['llama-k', 'f16'],
  ])('keeps the GGUF file %s in %s', async (name, dtype) => {
    const file = fileURLToPath(
      new URL(`../../test/fixtures/reference/gguf/${name}/model.gguf`, import.meta.url),
    )
    expect((await importModel(file, store)).dtype).toBe(dtype)
  })

  it('takes the id that it is given', async () => {
    // Cast: a valid id.
    const id = 'mine' as ModelId
    expect((await importModel(source, store, { id })).id).toBe('mine')
  })
})

describe('a directory that can not be imported', () => {
  const drop = (name: string) => () => rm(join(source, name))
  const index = (map: unknown) => async () => {
    await rm(join(source, 'model.safetensors'))
    await put('model.safetensors.index.json', JSON.stringify({ weight_map: map }))
  }
  const without = (name: string) => async () => {
    const tensors = randomTensors(config)
    tensors.delete(name)
    await put('model.safetensors', writeSafetensors(config, tensors))
  }

  it.each([
    ['no config.json', drop('config.json'), /^model-invalid: .* has no config\.json/],
    ['no tokenizer.json', drop('tokenizer.json'), /^model-invalid: .* has no tokenizer\.json/],
    ['no weights', drop('model.safetensors'), /^model-invalid: .* neither model\.safetensors nor/],
    [
      'only the vocabulary of SentencePiece',
      async () => {
        await drop('tokenizer.json')()
        await put('tokenizer.model', 'x')
      },
      /^model-invalid: .* has no tokenizer\.json\. It has tokenizer\.model, .*AutoTokenizer/,
    ],
    [
      'weights in a pickle',
      async () => {
        await drop('model.safetensors')()
        await put('pytorch_model.bin', 'x')
      },
      /^model-invalid: .* neither .*It has pytorch_model\.bin, .*AutoModelForCausalLM/,
    ],
    [
      'a GGUF file and nothing else',
      async () => {
        for (const name of await readdir(source)) await drop(name)()
        await put('m-Q4_0.gguf', 'x')
      },
      /^model-invalid: .* has no config\.json\. Give the GGUF file itself: m-Q4_0\.gguf\./,
    ],
    ['a broken config', () => put('config.json', '{'), /^model-invalid: config\.json is not JSON/],
    [
      'another architecture',
      () => put('config.json', '{"model_type":"mamba","architectures":["MambaForCausalLM"]}'),
      /^model-unsupported: .*MambaForCausalLM/,
    ],
    [
      'a tensor missing',
      without('model.layers.1.mlp.up_proj.weight'),
      /^model-invalid: .*lack the tensor model\.layers\.1\.mlp\.up_proj\.weight/,
    ],
    [
      'a truncated weights file',
      async () => {
        const bytes = await readFile(join(source, 'model.safetensors'))
        await put('model.safetensors', bytes.subarray(0, bytes.length - 100))
      },
      /^model-invalid: model\.safetensors: the tensor .* after the file/,
    ],
    [
      'a weights file that is something else',
      () => put('model.safetensors', '<!doctype html><title>Not found</title>'),
      /^model-invalid: model\.safetensors is not a safetensors file/,
    ],
    [
      'an index that leads out',
      index({ a: '../other.safetensors' }),
      /names the file "\.\.\/other/,
    ],
    ['an index to nothing', index({ a: 'gone.safetensors' }), /lacks gone\.safetensors/],
    ['an index without a map', index([]), /no valid "weight_map"/],
    [
      'an end-of-text id outside the vocabulary',
      () => put('generation_config.json', '{"eos_token_id":96}'),
      /^model-invalid: The end-of-text id 96 is outside the vocabulary of 96/,
    ],
  ])('with %s is refused by name, and the store stays as it was', async (_, damage, message) => {
    const manifest = await importModel(source, store)
    await damage()
    expect(await refusal(importModel(source, store))).toMatch(message)
    expect(await readManifest(store)).toEqual(manifest)
  })

  it('that does not exist, or with a context that the model lacks', async () => {
    expect(await refusal(importModel(join(root, 'nothing'), store))).toMatch(/^model-not-found/)
    const long = importModel(source, store, { contextLength: 65 })
    expect(await refusal(long)).toMatch(/^bad-option: .* from 1 to 64, not 65/)
  })
})

describe('resolveModel', () => {
  it('prefers a built-in name, then takes a path', async () => {
    await mkdir(join(root, 'builtin', 'tiny'), { recursive: true })
    const builtin = join(root, 'builtin')
    expect(await resolveModel('tiny', builtin)).toEqual({
      kind: 'builtin',
      name: 'tiny',
      path: join(builtin, 'tiny'),
    })
    const own = { kind: 'path', name: 'tiny', path: source }
    expect(await resolveModel(source, builtin)).toEqual(own)
    expect(await resolveModel('huge', builtin)).toBeNull()
    expect(await resolveModel('', builtin)).toBeNull()
  })

  it.each(['model.safetensors', 'config.json', 'tokenizer.json'])(
    'of %s names the folder to give',
    async (file) => {
      await expect(resolveModel(join(source, file), root)).rejects.toThrow(
        `is one file of a model: give its folder, ${source}.`,
      )
    },
  )
})

describe('parseManifest', () => {
  type Json = Record<string, unknown>
  const change = async (edit: (manifest: never) => void): Promise<string> => {
    const manifest: unknown = JSON.parse(JSON.stringify(await importModel(source, store)))
    // Cast: each edit knows which field it damages.
    edit(manifest as never)
    return refusal(Promise.resolve().then(() => parseManifest(manifest)))
  }

  it('accepts what the import wrote and drops what it does not know', async () => {
    const manifest = await importModel(source, store)
    expect(parseManifest({ ...manifest, future: 1 })).toEqual(manifest)
    expect(tensorShapes(config).size).toBe(20)
  })

  it.each<[string, (manifest: Json & { blocks: Json[]; files: Json }) => void, RegExp]>([
    ['another format', (m) => (m['format'] = 2), /"format" is 2/],
    ['a path as id', (m) => (m['id'] = '../x'), /"id" is malformed/],
    ['a short revision', (m) => (m['revision'] = 'ab'), /"revision"/],
    ['an unknown dtype', (m) => (m['dtype'] = 'f64'), /"dtype" must be one of/],
    ['a fractional size', (m) => (m['hiddenSize'] = 1.5), /"hiddenSize" is 1\.5/],
    ['too many layers', (m) => (m['layerCount'] = 1e6), /"layerCount"/],
    ['a block too few', (m) => m.blocks.pop(), /"blocks" has 3 entries for 2 layers/],
    ['blocks in another order', (m) => m.blocks.reverse(), /block 0 must be the embedding/],
    ['a layer without a graph', (m) => (m.blocks[1]!['graph'] = null), /block 1 has no graph/],
    ['a lying size', (m) => (m.blocks[1]!['dataBytes'] = 5), /pieces of block 1 do not add up/],
    [
      'a hash that is none',
      (m) => (m.blocks[1]!['data'] = [{ sha256: '../../etc', bytes: 1 }]),
      /"sha256" is malformed/,
    ],
    [
      'a huge piece',
      (m) => (m.blocks[1]!['data'] = [{ sha256: 'a'.repeat(64), bytes: 2 ** 40 }]),
      /"bytes" is 1099511627776/,
    ],
    [
      'a table that exceeds its data',
      (m) => ((m.blocks[0]!['table'] as Json)['offset'] = 64),
      /table exceeds its data/,
    ],
    [
      'a table of other sizes',
      (m) => ((m.blocks[0]!['table'] as Json)['rows'] = 7),
      /table does not fit/,
    ],
    ['a file name with a slash', (m) => (m.files['a/b'] = {}), /malformed name/],
    ['an end id outside', (m) => (m['eosTokenIds'] = [96]), /outside the vocabulary/],
  ])('refuses %s', async (_, edit, message) => {
    const result = await change(edit)
    expect(result).toMatch(/^model-invalid: manifest\.json/)
    expect(result).toMatch(message)
  })

  it('refuses what is no object', () => {
    for (const json of [null, 7, 'x', []])
      expect(() => parseManifest(json)).toThrow(/not a JSON obj/)
  })
})
