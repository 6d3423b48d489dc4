import { describe, expect, it } from 'vitest'
import weightsUrl from '../../public/models/crowdtalk-0.3m/model.safetensors?url'
import config from '../../public/models/crowdtalk-0.3m/config.json'
import type { ModelId } from '../../sdk/core/ids.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import { parseLlamaConfig } from '../../sdk/core/model/llama-config.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { browserCandidates } from '../../sdk/runtime/ort.browser.ts'
import golden from '../golden/crowdtalk-0.3m.json'
import { createTestModel, fileSource, type TestModel } from '../support/models.ts'
import { openStageChain } from '../support/stage-chain.ts'

/** A software GPU compiles its shaders for seconds before it computes. */
const LIMIT_MS = 240_000

async function readModel(): Promise<{ model: TestModel; manifest: Manifest }> {
  const file = new Uint8Array(await (await fetch(weightsUrl)).arrayBuffer())
  const parsed = parseLlamaConfig(config)
  const model = createTestModel(parsed, 'f16', fileSource(file))
  const { hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize } = parsed
  const manifest: Manifest = {
    format: 1,
    // Cast: stays in this test.
    id: 'law' as ModelId,
    revision: 'law',
    architecture: parsed.architecture,
    dtype: 'f16',
    ...{ hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize },
    contextLength: parsed.contextLength,
    eosTokenIds: parsed.eosTokenIds,
    blocks: model.plans.map(({ kind, dataBytes, f32Bytes, table }) => ({
      kind,
      graph: null,
      data: [],
      dataBytes,
      f32Bytes,
      ...(table ? { table } : {}),
    })),
    files: {},
  }
  return { model, manifest }
}

describe.each(['wasm', 'webgpu'] as const)('on %s in a browser', (provider) => {
  it('a chain of stages gives the golden ids', { timeout: LIMIT_MS }, async () => {
    const { model, manifest } = await readModel()
    const [candidate] = browserCandidates({ prefer: provider, threads: 1 })
    const backend = await candidate!.open()
    expect(backend.report.provider).toBe(provider)
    const end = manifest.layerCount + 2
    const cuts: BlockRange[] = [
      { start: 0, end: 2 },
      { start: 2, end },
    ]
    const chain = await openStageChain(backend, manifest, {
      ranges: cuts,
      readBlock: async (block) => ({
        graph: model.plans[block]?.graph?.slice() ?? null,
        data: await model.blockBytes(block),
      }),
    })
    const { promptIds, ids } = golden.find((entry) => entry.logits !== undefined) ?? golden[0]!
    const count = Math.min(ids.length, 12)
    const got = await chain.generate(promptIds, { count, chunk: 8 })
    expect(got).toEqual(ids.slice(0, count))
    // Back into the prompt and on again: the caches are cut to the position.
    const again = await chain.generate(promptIds, { count: 4, chunk: 8, from: 8 })
    expect(again).toEqual(ids.slice(0, 4))
    await chain.close()
    backend.close()
  })
})
