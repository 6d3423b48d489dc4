import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import { readOnnx } from '../../sdk/core/graph/onnx-reader.ts'
import { lowerBlock, type LoweredBlock } from '../../sdk/core/model/lower.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { importModel } from '../../sdk/import/import-model.node.ts'
import { readBlock } from '../../sdk/import/model-store.node.ts'
import { openBlocks } from '../support/block-chain.ts'
import { greedy, worstDifference } from '../support/chained-blocks.ts'
import { testBackend } from '../support/node-backends.ts'
import { openStageChain } from '../support/stage-chain.ts'
import { openUnsplitOnnx } from '../support/unsplit-onnx.ts'

/** Made by tools/reference/export_onnx.py with the exporters that published files come from. */
const FIXTURES = fileURLToPath(new URL('../fixtures/reference/onnx', import.meta.url))
const LIMIT_MS = 120_000

/** What ONNX Runtime's Python package gives on the unsplit file, or transformers where no CPU runs it. */
type Reference = {
  readonly file: string
  readonly dtype: 'fp32' | 'fp16' | 'int4' | 'q4' | 'q4f16' | 'int8' | 'uint8' | 'bnb4'
  readonly by: 'onnxruntime' | 'transformers'
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  readonly minGap: number
  readonly logits: readonly (readonly number[])[]
}

/**
 * On the CPU the same kernels run in both, so only the order of sums differs; of half files the unsplit one
 * rounds every activation, the blocks none.
 */
const TOLERANCE = 1e-4
const HALF_TOLERANCE = 2e-2
/** The CPU's 4-bit kernel rounds activations to int8; WASM multiplies the f32 weights. */
const INT8_TOLERANCE = 0.2
/** What one scale for the whole prompt changes where activations are quantised as they come. */
const DYNAMIC_TOLERANCE = 0.4

const names = (await readdir(FIXTURES)).sort()

describe.each(names)('%s', { timeout: LIMIT_MS }, (name) => {
  const directory = join(FIXTURES, name)
  let reference: Reference
  let store = ''
  let manifest: Manifest
  let count = 0

  beforeAll(async () => {
    store = await mkdtemp(join(tmpdir(), 'crowdinfer-onnx-'))
    // Cast: the fixture's own format.
    reference = JSON.parse(await readFile(join(directory, 'reference.json'), 'utf8')) as Reference
    manifest = await importModel(directory, store)
    count = reference.ids.length
  })
  afterAll(() => rm(store, { recursive: true, force: true }))

  const read = (block: number): ReturnType<typeof readBlock> => readBlock(store, manifest, block)
  const isDynamic = (): boolean => ['int8', 'uint8'].includes(reference.dtype)
  const tolerance = (): number => {
    const isHalf = ['fp16', 'q4f16'].includes(reference.dtype)
    return isHalf ? HALF_TOLERANCE : TOLERANCE
  }
  /** Of the committed logits, which are those of the whole prompt in one run. */
  const referenceTolerance = (): number => (isDynamic() ? DYNAMIC_TOLERANCE : tolerance())

  it('chained blocks give what the exporter’s file gives unsplit', async () => {
    const { ort } = testBackend('cpu')
    const chain = await openBlocks(ort, manifest, read, 'cpu')
    for (const chunk of [reference.promptIds.length, 4]) {
      const run = { count, chunk, vocabSize: manifest.vocabSize }
      const got = await greedy(chain, reference.promptIds, run)
      if (reference.by === 'onnxruntime') {
        const whole = await openUnsplitOnnx(join(directory, reference.file), manifest)
        // The file has one scale for all tokens of a run; the blocks one for each token, as if it ran alone.
        const chunkUnsplit = isDynamic() ? 1 : chunk
        const want = await greedy(whole, reference.promptIds, { ...run, chunk: chunkUnsplit })
        await whole.close()
        expect(got.ids).toEqual(want.ids)
        expect(worstDifference(got.logits, want.logits)).toBeLessThan(tolerance())
      }
      expect(got.ids).toEqual(reference.ids)
      const first = got.logits.slice(0, reference.logits.length)
      const rows = reference.logits.map((row) => Float32Array.from(row))
      expect(worstDifference(first, rows)).toBeLessThan(referenceTolerance())
    }
    await chain.close()
  })

  it('chained blocks give the same on WASM', async () => {
    const { ort } = testBackend('wasm')
    const chain = await openBlocks(ort, manifest, read, 'wasm')
    const isInt8 = ['int4', 'q4'].includes(reference.dtype)
    // After a token that is turned by rounding there's nothing to compare.
    const rows = reference.logits.slice(0, isInt8 ? 1 : 3).map((row) => Float32Array.from(row))
    const run = { count: rows.length, chunk: 4, vocabSize: manifest.vocabSize }
    const got = await greedy(chain, reference.promptIds, run)
    await chain.close()
    expect(worstDifference(got.logits, rows)).toBeLessThan(
      isInt8 ? INT8_TOLERANCE : referenceTolerance(),
    )
    if (!isInt8) expect(got.ids).toEqual(reference.ids.slice(0, rows.length))
  })

  it('is lowered to what each provider runs fast and can run', async () => {
    const lowered = async (provider: 'cpu' | 'wasm' | 'webgpu'): Promise<LoweredBlock> => {
      const { graph, data } = await read(1)
      return lowerBlock({ graph: graph ?? new Uint8Array(), data }, provider)
    }
    const ops = readOnnx((await lowered('wasm')).model).nodes.map(({ op }) => op)
    expect(ops).not.toContain('MatMulNBits')
    expect(ops).not.toContain('MatMulBnb4')
    expect((await lowered('cpu')).kv).toBe('delta')
    const gpu = await lowered('webgpu')
    // What concatenates its past can't write into a buffer, and attention with sinks stays on the CPU.
    const isShared = name.startsWith('genai') && !name.includes('gptoss')
    expect(gpu.kv).toBe(isShared ? 'shared' : 'delta')
    expect(gpu.cpuNodes.length > 0).toBe(!isShared && !name.includes('gpt2'))
  })

  it('answers the same wherever it is cut, each layer a stage of its own, and after going back', async () => {
    const end = manifest.layerCount + 2
    const cuts: BlockRange[][] = [manifest.blocks.map((_, i) => ({ start: i, end: i + 1 }))]
    for (let cut = 1; cut < end; cut++) {
      cuts.push([
        { start: 0, end: cut },
        { start: cut, end },
      ])
    }
    const { promptIds, ids } = reference
    for (const ranges of cuts) {
      const chain = await openStageChain(testBackend('cpu'), manifest, { ranges, readBlock: read })
      const stages = ranges.map(({ start }) => start).join()
      expect(await chain.generate(promptIds, { count, chunk: 4 }), stages).toEqual(ids)
      const other = [...promptIds.slice(0, 4), ...promptIds.slice(4).toReversed()]
      await chain.generate(other, { count: 4, chunk: other.length })
      expect(await chain.generate(promptIds, { count, chunk: 4, from: 4 }), stages).toEqual(ids)
      await chain.close()
    }
  })
})
