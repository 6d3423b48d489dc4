import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { importModel } from '../../sdk/import/import-model.node.ts'
import { openModelDirectory } from '../../sdk/import/model-directory.node.ts'
import { readBlock } from '../../sdk/import/model-store.node.ts'
import { openSafetensors } from '../../sdk/import/safetensors-source.node.ts'
import { greedy, openChain, openWhole, worstDifference } from '../support/chained-blocks.ts'
import { createTestModel, type TestModel } from '../support/models.ts'
import { testBackend } from '../support/node-backends.ts'
import { openStageChain } from '../support/stage-chain.ts'

/** Made by PyTorch's LlamaForCausalLM: an implementation that isn't ours. */
type Golden = {
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  /** Smallest lead of the best logit over the second along the way. */
  readonly minGap: number
  /** Of the token after the prompt. */
  readonly logits?: readonly number[]
  /** After each layer, at the prompt's last position. */
  readonly hidden?: readonly (readonly number[])[]
}

const TOLERANCE = 1e-4
/** Seconds on a free machine; test machines are shared. */
const LIMIT_MS = 180_000
const MODELS = ['crowdtalk-0.3m', 'crowdtalk-2.6m']
const PROVIDERS = ['cpu', 'wasm'] as const

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))

async function readGolden(name: string): Promise<Golden[]> {
  const text = await readFile(path(`../golden/${name}.json`), 'utf8')
  // Cast: the file is ours and committed.
  return JSON.parse(text) as Golden[]
}

async function readModel(name: string): Promise<TestModel> {
  const directory = path(`../../public/models/${name}`)
  const { config } = await openModelDirectory(directory)
  const source = await openSafetensors(directory)
  const model = createTestModel(config, 'f16', source)
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
  let model: TestModel
  let golden: Golden[]
  let store = ''
  let manifest: Manifest

  beforeAll(async () => {
    store = await mkdtemp(join(tmpdir(), 'crowdinfer-law-'))
    model = await readModel(name)
    golden = await readGolden(name)
    manifest = await importModel(path(`../../public/models/${name}`), store)
  })
  afterAll(() => rm(store, { recursive: true, force: true }))

  /** One prompt in the middle of the list is enough where every cut is tried. */
  const oneCase = (): Golden => golden.find((entry) => entry.logits) ?? golden[0]!

  describe.each(PROVIDERS)('on %s', (provider) => {
    it('answers every golden prompt with the golden ids, each layer a stage of its own', async () => {
      const ranges = manifest.blocks.map((_, start) => ({ start, end: start + 1 }))
      const chain = await openStageChain(testBackend(provider), manifest, {
        ranges,
        readBlock: (block) => readBlock(store, manifest, block),
      })
      for (const { promptIds, ids, minGap } of golden) {
        if (minGap < TOLERANCE) continue
        const got = await chain.generate(promptIds, { count: ids.length, chunk: 5 })
        expect(got).toEqual(ids)
      }
      await chain.close()
    })

    it('answers the same whichever border is cut, and whole', async () => {
      const end = manifest.layerCount + 2
      const { promptIds, ids } = oneCase()
      const count = Math.min(ids.length, 12)
      for (let cut = 0; cut < end; cut++) {
        const ranges =
          cut === 0
            ? [{ start: 0, end }]
            : [
                { start: 0, end: cut },
                { start: cut, end },
              ]
        const chain = await openStageChain(testBackend(provider), manifest, {
          ranges,
          readBlock: (block) => readBlock(store, manifest, block),
        })
        const got = await chain.generate(promptIds, { count, chunk: 32 })
        await chain.close()
        expect(got, `cut before block ${cut}`).toEqual(ids.slice(0, count))
      }
    })

    it('takes a position back and goes on as if nothing had been after it', async () => {
      const { promptIds, ids } = oneCase()
      const chain = await openStageChain(testBackend(provider), manifest, {
        ranges: [
          { start: 0, end: 2 },
          { start: 2, end: manifest.layerCount + 2 },
        ],
        readBlock: (block) => readBlock(store, manifest, block),
      })
      const other = [...promptIds.slice(0, 4), ...promptIds.slice(4).toReversed()]
      await chain.generate(other, { count: 16, chunk: 16 })
      const got = await chain.generate(promptIds, { count: 16, chunk: 16, from: 4 })
      await chain.close()
      expect(got).toEqual(ids.slice(0, 16))
    })

    it('gives the golden logits and hidden states, chained and whole', async () => {
      const { ort } = testBackend(provider)
      const { promptIds, ids, logits = [], hidden = [] } = oneCase()
      const run = {
        count: Math.min(ids.length, 8),
        chunk: promptIds.length,
        vocabSize: manifest.vocabSize,
      }
      const states: Float32Array[] = []
      const width = manifest.hiddenSize
      const chain = await openChain(ort, model, {
        provider,
        cuts: [],
        onHidden: (block, state) => {
          if (block > 1 && states.length < hidden.length) states.push(state.slice(-width))
        },
      })
      const whole = await openWhole(ort, model, provider)
      const chained = await greedy(chain, promptIds, run)
      const unsplit = await greedy(whole, promptIds, run)
      await Promise.all([chain.close(), whole.close()])

      expect(worstDifference(chained.logits, unsplit.logits)).toBeLessThan(TOLERANCE)
      expect(logits.length).toBe(manifest.vocabSize)
      const want = Float32Array.from(logits)
      expect(worstDifference(chained.logits.slice(0, 1), [want])).toBeLessThan(TOLERANCE)
      expect(hidden.length).toBe(manifest.layerCount)
      const goldenStates = hidden.map((state) => Float32Array.from(state))
      // The file has six digits, and the residual stream of a trained model can be large.
      const scale = Math.max(10, ...hidden.flat().map(Math.abs)) / 10
      expect(worstDifference(states, goldenStates)).toBeLessThan(TOLERANCE * scale)
    })
  })
})
