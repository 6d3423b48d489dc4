import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTokenizer } from '../../sdk/client/tokenizer.hf.ts'
import { PREFILL_CHUNK_TOKENS } from '../../sdk/core/limits.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import { importModel } from '../../sdk/import/import-model.node.ts'
import { openModelDirectory } from '../../sdk/import/model-directory.node.ts'
import { readBlock, readPiece } from '../../sdk/import/model-store.node.ts'
import { greedy, openChain, openWhole, worstDifference } from '../support/chained-blocks.ts'
import { goldenOf } from '../support/golden.ts'
import { createTestModel, type TestModel } from '../support/models.ts'
import { testBackend } from '../support/node-backends.ts'
import { openStageChain, type StageChain } from '../support/stage-chain.ts'

const TOLERANCE = 1e-4
/** Seconds on a free machine; test machines are shared. */
const LIMIT_MS = 180_000
const MODELS = ['crowdtalk-0.3m', 'crowdtalk-2.6m']
const PROVIDERS = ['cpu', 'wasm'] as const

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))

async function readModel(name: string): Promise<TestModel> {
  const directory = path(`../../public/models/${name}`)
  const source = await openModelDirectory(directory)
  const decoder = parseDecoder(source.config, source.generationConfig)
  const model = createTestModel(decoder, 'f16', source.weights)
  // All weights are read before the files are closed.
  const blocks = await Promise.all(model.plans.map((_, block) => model.blockBytes(block)))
  const data = await model.whole.data()
  await source.close()
  return {
    ...model,
    blockBytes: (block) => Promise.resolve(blocks[block] ?? new Uint8Array()),
    whole: { graph: model.whole.graph, data: () => Promise.resolve(data) },
  }
}

describe.each(MODELS)('%s', { timeout: LIMIT_MS }, (name) => {
  const golden = goldenOf(name)
  let model: TestModel
  let store = ''
  let manifest: Manifest

  beforeAll(async () => {
    store = await mkdtemp(join(tmpdir(), 'crowdinfer-law-'))
    model = await readModel(name)
    manifest = await importModel(path(`../../public/models/${name}`), store)
  })
  afterAll(() => rm(store, { recursive: true, force: true }))

  async function open(
    provider: (typeof PROVIDERS)[number],
    ranges: BlockRange[],
  ): Promise<StageChain> {
    return openStageChain(testBackend(provider), manifest, {
      ranges,
      readBlock: (block) => readBlock(store, manifest, block),
    })
  }

  it('chooses every golden token by a lead that rounding cannot turn', () => {
    for (const { minGap, prompt } of golden.cases) {
      expect(minGap, prompt).toBeGreaterThan(2 * TOLERANCE)
    }
  })

  it('has a tokenizer that gives the ids and the texts of the Python one', async () => {
    const read = async (file: string): Promise<unknown> => {
      const { sha256 } = manifest.files[file]!
      return JSON.parse(new TextDecoder().decode(await readPiece(store, sha256)))
    }
    const tokenizer = createTokenizer({
      tokenizerJson: await read('tokenizer.json'),
      tokenizerConfig: await read('tokenizer_config.json'),
    })
    for (const { prompt, messages, promptIds, ids, text } of golden.cases) {
      if (messages) expect(tokenizer.encodeChat(messages), prompt).toEqual(promptIds)
      expect(tokenizer.encode(prompt, { control: true })).toEqual(promptIds)
      expect(tokenizer.decode(ids)).toBe(text)
    }
  })

  describe.each(PROVIDERS)('on %s', (provider) => {
    it('answers every golden prompt with the golden ids, each layer a stage of its own', async () => {
      const ranges = manifest.blocks.map((_, start) => ({ start, end: start + 1 }))
      const chain = await open(provider, ranges)
      for (const { promptIds, ids } of golden.cases) {
        const got = await chain.generate(promptIds, { count: ids.length, chunk: 5 })
        expect(got).toEqual(ids)
      }
      await chain.close()
    })

    it('answers the same whichever border is cut and however the prompt is, and whole', async () => {
      const end = manifest.layerCount + 2
      const prompts = [
        { entry: golden.detailed, chunk: 4 },
        { entry: golden.longest, chunk: PREFILL_CHUNK_TOKENS },
      ]
      for (let cut = 0; cut < end; cut++) {
        const rest = { start: cut, end }
        const chain = await open(provider, cut === 0 ? [rest] : [{ start: 0, end: cut }, rest])
        for (const { entry, chunk } of prompts) {
          const { promptIds } = entry
          expect(promptIds.length).toBeGreaterThan(2 * chunk)
          const ids = entry.ids.slice(0, 8)
          const got = await chain.generate(promptIds, { count: ids.length, chunk })
          expect(got, `cut before block ${cut}, chunks of ${chunk}`).toEqual(ids)
        }
        await chain.close()
      }
    })

    it('takes a position back and goes on as if nothing had been after it', async () => {
      const { promptIds, ids } = golden.detailed
      const chain = await open(provider, [
        { start: 0, end: 2 },
        { start: 2, end: manifest.layerCount + 2 },
      ])
      const other = [...promptIds.slice(0, 4), ...promptIds.slice(4).toReversed()]
      await chain.generate(other, { count: 16, chunk: 16 })
      const got = await chain.generate(promptIds, { count: 16, chunk: 16, from: 4 })
      await chain.close()
      expect(got).toEqual(ids.slice(0, 16))
    })

    it('answers every golden prompt with the golden ids, chained and whole', async () => {
      const { ort } = testBackend(provider)
      const chain = await openChain(ort, model, { provider, cuts: [] })
      const whole = await openWhole(ort, model, provider)
      for (const { promptIds, ids } of golden.cases) {
        const count = Math.min(ids.length, 8)
        const run = { count, chunk: promptIds.length, vocabSize: manifest.vocabSize }
        const chained = await greedy(chain, promptIds, run)
        const unsplit = await greedy(whole, promptIds, run)
        expect(unsplit.ids).toEqual(ids.slice(0, count))
        expect(chained.ids).toEqual(unsplit.ids)
        expect(worstDifference(chained.logits, unsplit.logits)).toBeLessThan(TOLERANCE)
      }
      await Promise.all([chain.close(), whole.close()])
    })

    it('gives the golden logits and hidden states', async () => {
      const { promptIds, logits, hidden } = golden.detailed
      const states: Float32Array[] = []
      const chain = await openChain(testBackend(provider).ort, model, {
        provider,
        cuts: [],
        onHidden: (block, state) => {
          if (block > 1) states.push(state.slice(-manifest.hiddenSize))
        },
      })
      const run = { count: 1, chunk: promptIds.length, vocabSize: manifest.vocabSize }
      const got = await greedy(chain, promptIds, run)
      await chain.close()
      expect(logits.length).toBe(manifest.vocabSize)
      expect(worstDifference(got.logits, [Float32Array.from(logits)])).toBeLessThan(TOLERANCE)
      expect(hidden.length).toBe(manifest.layerCount)
      const goldenStates = hidden.map((state) => Float32Array.from(state))
      // The file has six digits, and the residual stream of a trained model can be large.
      const scale = Math.max(10, ...hidden.flat().map(Math.abs)) / 10
      expect(worstDifference(states, goldenStates)).toBeLessThan(TOLERANCE * scale)
    })
  })
})
