import { describe, expect, it } from 'vitest'
import largeUrl from '../../public/models/crowdtalk-2.6m/model.safetensors?url'
import largeConfig from '../../public/models/crowdtalk-2.6m/config.json'
import smallUrl from '../../public/models/crowdtalk-0.3m/model.safetensors?url'
import smallConfig from '../../public/models/crowdtalk-0.3m/config.json'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { browserCandidates } from '../../sdk/runtime/ort.browser.ts'
import { createTestModel, fileSource, type TestModel } from '../support/models.ts'
import { goldenOf } from '../support/golden.ts'
import { openStageChain } from '../support/stage-chain.ts'
import { manifestOf } from '../support/test-manifest.ts'

/** A software GPU compiles its shaders for seconds before it computes. */
const LIMIT_MS = 240_000

const MODELS = {
  'crowdtalk-0.3m': { url: smallUrl, config: smallConfig },
  'crowdtalk-2.6m': { url: largeUrl, config: largeConfig },
}

async function readModel(
  name: keyof typeof MODELS,
): Promise<{ model: TestModel; manifest: Manifest }> {
  const { url, config } = MODELS[name]
  const file = new Uint8Array(await (await fetch(url)).arrayBuffer())
  const model = createTestModel(parseDecoder(config), 'f16', fileSource(file))
  return { model, manifest: manifestOf(model) }
}

/** Of the token after the golden prompt, by PyTorch. */
function logprobOf(token: number, logits: readonly number[]): number {
  const top = Math.max(...logits)
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - top), 0)
  return (logits[token] ?? NaN) - top - Math.log(sum)
}

describe.each([
  { name: 'crowdtalk-0.3m', provider: 'wasm', tolerance: 1e-4 },
  { name: 'crowdtalk-0.3m', provider: 'webgpu', tolerance: 1e-3 },
  { name: 'crowdtalk-2.6m', provider: 'wasm', tolerance: 1e-4 },
  { name: 'crowdtalk-2.6m', provider: 'webgpu', tolerance: 1e-3 },
] as const)('$name on $provider in a browser', ({ name, provider, tolerance }) => {
  const { promptIds, ids, logits } = goldenOf(name).detailed

  it('gives the golden ids through two cuts', { timeout: LIMIT_MS }, async () => {
    const { model, manifest } = await readModel(name)
    const [candidate] = browserCandidates({ prefer: provider, threads: 1 })
    const backend = await candidate!.open()
    expect(backend.report.provider).toBe(provider)
    const end = manifest.layerCount + 2
    const ranges: BlockRange[] = [
      { start: 0, end: 2 },
      { start: 2, end: end - 1 },
      { start: end - 1, end },
    ]
    const chain = await openStageChain(backend, manifest, {
      ranges,
      readBlock: async (block) => ({
        graph: model.plans[block]?.graph?.slice() ?? null,
        data: await model.blockBytes(block),
      }),
    })
    const count = Math.min(ids.length, 12)
    const got = await chain.sample(promptIds, { count, chunk: 8 })
    expect(got.map(({ token }) => token)).toEqual(ids.slice(0, count))
    const first = got[0]!
    expect(Math.abs(first.logprob - logprobOf(first.token, logits))).toBeLessThan(tolerance)
    // Back into the prompt and on again: the caches are cut to the position.
    const again = await chain.generate(promptIds, { count: 4, chunk: 8, from: 8 })
    expect(again).toEqual(ids.slice(0, 4))
    await chain.close()
    backend.close()
  })
})
