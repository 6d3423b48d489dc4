import { cp, mkdir, mkdtemp, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CrowdError } from '../core/errors.ts'
import type { Graph, Initializer } from '../core/graph/graph.ts'
import { readOnnx } from '../core/graph/onnx-reader.ts'
import { writeOnnx } from '../core/graph/onnx-writer.ts'
import type { Block } from '../core/model/manifest.ts'
import { importModel } from './import-model.node.ts'
import type { ImportProgress } from './import-options.ts'
import { resolveModel } from './resolve-model.node.ts'

const FIXTURES = fileURLToPath(new URL('../../test/fixtures/reference/onnx', import.meta.url))
const PLAIN = join(FIXTURES, 'genai-llama-fp32')

let root: string
let model: string
let store: string

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'crowdinfer-import-onnx-'))
  model = join(root, 'model')
  store = join(root, 'store')
  await cp(PLAIN, model, { recursive: true })
})
afterEach(() => rm(root, { recursive: true, force: true }))

async function refusal(
  path = model,
  options: Parameters<typeof importModel>[2] = {},
): Promise<string> {
  return importModel(path, store, options).then(
    () => 'accepted',
    (error: unknown) =>
      error instanceof CrowdError ? `${error.code}: ${error.message}` : String(error),
  )
}

async function blocksOf(path: string): Promise<readonly Block[]> {
  return (await importModel(path, store)).blocks
}

/** Writes the model anew with each weight where `place` puts it. */
async function rewrite(
  place: (entry: Initializer, bytes: Uint8Array, index: number) => Promise<Initializer['data']>,
): Promise<void> {
  const graph = readOnnx(new Uint8Array(await readFile(join(model, 'onnx/model.onnx'))))
  const data = new Uint8Array(await readFile(join(model, 'onnx/model.onnx.data')))
  const initializers: Initializer[] = []
  for (const [index, entry] of graph.initializers.entries()) {
    if (entry.data.kind === 'inline') throw new Error('the fixture has its weights outside')
    const { offset, length } = entry.data
    const bytes = data.subarray(offset, offset + length)
    initializers.push({ ...entry, data: await place(entry, bytes, index) })
  }
  const changed: Graph = { ...graph, initializers }
  await writeFile(join(model, 'onnx/model.onnx'), writeOnnx(changed))
}

describe('importing an ONNX export', () => {
  it('gives the same pieces whether the weights lie beside the graph, in several files, or in it', async () => {
    const want = await blocksOf(PLAIN)
    await mkdir(join(model, 'onnx/more'))
    await rewrite(async (_, bytes, index) => {
      const location = index % 2 === 0 ? 'model.onnx_data' : './more/model.onnx_data_1'
      const path = join(model, 'onnx', location)
      const before = await readFile(path).catch(() => new Uint8Array())
      await writeFile(path, new Uint8Array([...before, 0, ...bytes]))
      return { kind: 'external', location, offset: before.length + 1, length: bytes.length }
    })
    expect(await blocksOf(model)).toEqual(want)
    await rm(model, { recursive: true })
    await cp(PLAIN, model, { recursive: true })
    await rewrite((_, bytes) => Promise.resolve({ kind: 'inline', bytes }))
    await rm(join(model, 'onnx/model.onnx.data'))
    expect(await blocksOf(model)).toEqual(want)
  })

  it('takes a file too, with config.json beside it or one folder up', async () => {
    const want = await blocksOf(PLAIN)
    expect(await blocksOf(join(model, 'onnx/model.onnx'))).toEqual(want)
    for (const name of ['model.onnx', 'model.onnx.data']) {
      await rename(join(model, 'onnx', name), join(model, name))
    }
    await rename(join(model, 'model.onnx'), join(model, 'of-another-name.onnx'))
    expect(await blocksOf(join(model, 'of-another-name.onnx'))).toEqual(want)
    // The only one in its directory.
    expect(await blocksOf(model)).toEqual(want)
    await rm(join(model, 'config.json'))
    expect(await refusal(join(model, 'of-another-name.onnx'))).toContain(
      'model-invalid: of-another-name.onnx has no config.json',
    )
    expect(await refusal(join(root, 'none.onnx'))).toContain('model-not-found')
  })

  it('is called after its folder, where the file is given', async () => {
    expect(await resolveModel(join(model, 'onnx/model.onnx'), root)).toMatchObject({
      name: 'model-model',
    })
    await cp(join(model, 'onnx/model.onnx'), join(root, 'plain/of it.onnx'))
    expect(await resolveModel(join(root, 'plain/of it.onnx'), root)).toMatchObject({
      name: 'plain-of-it',
    })
  })

  it('chooses the file by dtype', async () => {
    await cp(join(FIXTURES, 'genai-llama-q4/onnx/model_q4.onnx'), join(model, 'onnx/model_q4.onnx'))
    expect((await importModel(model, store)).dtype).toBe('f32')
    expect((await importModel(model, store, { dtype: 'fp32' })).dtype).toBe('f32')
    await cp(
      join(FIXTURES, 'genai-llama-q4/onnx/model.onnx.data'),
      join(model, 'onnx/model.onnx.data'),
    )
    expect((await importModel(model, store, { dtype: 'q4' })).dtype).toBe('q4')
    const text = await refusal(model, { dtype: 'bnb4' })
    expect(text).toContain('bad-option')
    expect(text).toContain('It has: fp32 (onnx/model.onnx), q4 (onnx/model_q4.onnx).')
    expect(await refusal(join(model, 'onnx/model.onnx'), { dtype: 'q4' })).toContain('is fp32')
  })

  it('takes the export beside safetensors only for a dtype that exports alone have', async () => {
    const tensors = fileURLToPath(new URL('../../test/fixtures/reference/llama', import.meta.url))
    await cp(join(tensors, 'model.safetensors'), join(model, 'model.safetensors'))
    const exported = await importModel(model, store, { dtype: 'fp32' })
    expect(exported.blocks).toEqual(await blocksOf(PLAIN))
    expect(await refusal(model, { dtype: 'q4f16' })).toContain('has no q4f16. It has: fp32')
    await rm(join(model, 'onnx'), { recursive: true })
    expect(await refusal(model, { dtype: 'q4f16' })).toContain('there is no q4f16')
  })

  it('tells of each block', async () => {
    const told: number[] = []
    const onProgress = ({ doneBlocks, totalBlocks }: ImportProgress): void =>
      void told.push(doneBlocks / totalBlocks)
    await importModel(model, store, { onProgress })
    expect(told).toEqual([1, 2, 3, 4, 5].map((done) => done / 5))
  })

  it('stores a tied table once, float or quantised', async () => {
    for (const name of ['genai-llama-q4', 'genai-qwen3-fp32', 'genai-qwen3-fp16']) {
      const blocks = await blocksOf(join(FIXTURES, name))
      const shared = blocks[0]!.data
      expect(blocks.at(-1)!.data.slice(0, shared.length), name).toEqual(shared)
    }
  })

  it('serves a shorter context with shorter tables', async () => {
    const long = await importModel(model, store)
    const short = await importModel(model, store, { contextLength: 16 })
    expect([long.contextLength, short.contextLength]).toEqual([64, 16])
    // Two tables of 48 rows less, 8 f32 each.
    expect(long.blocks[1]!.dataBytes - short.blocks[1]!.dataBytes).toBe(2 * 48 * 8 * 4)
    expect(await refusal(model, { contextLength: 65 })).toContain('bad-option')
  })

  it('has its own store brought up to date when a weights file changes', async () => {
    const before = await importModel(model, store)
    const path = join(model, 'onnx/model.onnx.data')
    const bytes = await readFile(path)
    bytes.fill(0, 0, 4096)
    await writeFile(path, bytes)
    const after = await importModel(model, store)
    expect(after.revision).not.toBe(before.revision)
    expect(await importModel(model, store)).toEqual(after)
  })

  it.each([
    '../config.json',
    '/etc/hostname',
    'a/../../config.json',
    '..\\config.json',
    'C:/x',
    'a//b',
    '',
  ])('refuses weights at %j', async (location) => {
    await rewrite((_, bytes) =>
      Promise.resolve({ kind: 'external', location, offset: 0, length: bytes.length }),
    )
    const text = await refusal()
    // The empty one stands for the graph file itself, which is too short for the table.
    expect(text).toMatch(
      location === '' ? /model-invalid: The tensor/ : /which is not a file beside/,
    )
  })

  it('names a weights file that is missing, and a tensor that its file is too short for', async () => {
    await truncate(join(model, 'onnx/model.onnx.data'), 20_000)
    expect(await refusal()).toMatch(/model-invalid: The tensor .* ends at byte \d+ of 20000/)
    await rm(join(model, 'onnx/model.onnx.data'))
    expect(await refusal()).toBe('model-invalid: The weights file model.onnx.data is missing.')
    await rm(join(model, 'tokenizer.json'))
    expect(await refusal()).toContain('has no tokenizer.json')
  })
})
