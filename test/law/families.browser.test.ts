import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { baseNames } from '../../sdk/core/families/base-names.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import type { SampledToken } from '../../sdk/core/sampling/params.ts'
import type { OrtBackend } from '../../sdk/runtime/ort-backend.ts'
import { browserCandidates } from '../../sdk/runtime/ort.browser.ts'
import type { BlockBytes } from '../../sdk/runtime/stage-runner.ts'
import { cutExport } from '../support/exported-model.ts'
import { createTestModel, fileSource } from '../support/models.ts'
import { openStageChain } from '../support/stage-chain.ts'
import { manifestOf } from '../support/test-manifest.ts'

/** A software GPU compiles its shaders for seconds before it computes. */
const LIMIT_MS = 240_000
/** The prompt in one step, then a token on top of the cache: each shape is compiled anew. */
const CHUNK = 32
const COUNT = 2

/** What each of them brings that Llama has not. */
const FAMILIES = [
  // ALiBi, biases, Gelu and LayerNormalization.
  'bloom',
  // Soft caps in attention and head, windows, norms around each part.
  'gemma2',
  // Experts: TopK, NonZero, gathered rows.
  'mixtral',
] as const

const EXPORTS = [
  // Sinks, windows, QMoE; the reference's 4-bit products round activations to 8 bits.
  { name: 'genai-gptoss-q4', tolerance: 0.2 },
  // Rotation by cosines and sines of positions, attention in plain operators.
  { name: 'optimum-llama-fp32', tolerance: 1e-4 },
] as const

const ROOT = '../fixtures/reference/'
// Cast: each is the default export of a module that Vite makes of a file, its address.
const ADDRESSES = import.meta.glob(
  [
    '../fixtures/reference/{bloom,gemma2,mixtral}/*',
    '../fixtures/reference/onnx/{genai-gptoss-q4,optimum-llama-fp32}/**',
  ],
  { query: '?url', import: 'default', eager: true },
) as Readonly<Record<string, string>>

type Example = {
  readonly manifest: Manifest
  readonly readBlock: (block: number) => Promise<BlockBytes>
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  /** Logits after the prompt, and after each id. */
  readonly rows: readonly Float32Array[]
}

/** A checkpoint, and what transformers computes with it. */
async function readFamily(name: string): Promise<Example> {
  // Cast: the format of our own fixtures.
  const reference = (await json(`${name}/reference.json`)) as FamilyReference
  const { promptIds, greedyIds, vocabSize } = reference
  const weights = fileSource(await bytes(`${name}/model.safetensors`))
  const decoder = parseDecoder(await json(`${name}/config.json`))
  const model = createTestModel(decoder, 'f32', baseNames(weights))
  const logits = new Float32Array((await bytes(`${name}/logits.f32`)).buffer)
  return {
    manifest: manifestOf(model),
    readBlock: async (block) => ({
      graph: model.plans[block]?.graph?.slice() ?? null,
      data: await model.blockBytes(block),
    }),
    promptIds,
    ids: greedyIds,
    rows: greedyIds.map((_, i) => {
      const row = promptIds.length - 1 + i
      return logits.subarray(row * vocabSize, (row + 1) * vocabSize)
    }),
  }
}

/** An exporter's file, and what ONNX Runtime gives on it unsplit. */
async function readExport(name: string): Promise<Example> {
  const folder = `onnx/${name}`
  // Cast: the format of our own fixtures.
  const reference = (await json(`${folder}/reference.json`)) as ExportReference
  const { file, promptIds, ids, logits } = reference
  const hasData = `${ROOT}${folder}/onnx/model.onnx.data` in ADDRESSES
  const data = hasData ? await bytes(`${folder}/onnx/model.onnx.data`) : new Uint8Array()
  const config = await json(`${folder}/config.json`)
  const cut = cutExport(config, await bytes(`${folder}/${file}`), data)
  return { ...cut, promptIds, ids, rows: logits.map((row) => Float32Array.from(row)) }
}

type FamilyReference = {
  readonly promptIds: readonly number[]
  readonly greedyIds: readonly number[]
  readonly vocabSize: number
}
type ExportReference = {
  readonly file: string
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  readonly logits: readonly (readonly number[])[]
}

async function bytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const address = ADDRESSES[`${ROOT}${path}`]
  if (address === undefined) throw new Error(`no fixture ${path}`)
  return new Uint8Array(await (await fetch(address)).arrayBuffer())
}

async function json(path: string): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await bytes(path))) as unknown
}

/** Through a cut in the middle. */
async function answer(backend: OrtBackend, example: Example): Promise<SampledToken[]> {
  const { readBlock, promptIds } = example
  // The references go on after an end token.
  const manifest = { ...example.manifest, eosTokenIds: [] }
  const end = manifest.layerCount + 2
  const cut = Math.floor(end / 2)
  const ranges: BlockRange[] = [
    { start: 0, end: cut },
    { start: cut, end },
  ]
  const chain = await openStageChain(backend, manifest, { ranges, readBlock })
  const sampled = await chain.sample(promptIds, { count: COUNT, chunk: CHUNK })
  await chain.close()
  return sampled
}

/** How far log-probabilities are from the reference's, over those ids that both chose before anything differed. */
function worstError(sampled: readonly SampledToken[], { ids, rows }: Example): number {
  const differs = sampled.findIndex(({ token }, i) => token !== ids[i])
  const compared = differs === -1 ? sampled : sampled.slice(0, differs + 1)
  const errors = compared.map(({ token, logprob }, i) =>
    Math.abs(logprob - logprobOf(token, rows[i] ?? new Float32Array())),
  )
  return Math.max(...errors)
}

function logprobOf(token: number, logits: Float32Array): number {
  const top = Math.max(...logits)
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - top), 0)
  return (logits[token] ?? NaN) - top - Math.log(sum)
}

const tokens = (sampled: readonly SampledToken[]): number[] => sampled.map(({ token }) => token)

describe('in a browser', () => {
  const opened = new Map<string, OrtBackend>()

  beforeAll(async () => {
    for (const prefer of ['wasm', 'webgpu'] as const) {
      const backend = await browserCandidates({ prefer, threads: 1 })[0]?.open()
      if (backend?.report.provider === prefer) opened.set(prefer, backend)
    }
  }, LIMIT_MS)
  afterAll(() => {
    for (const backend of opened.values()) backend.close()
  })

  const on = (provider: string): OrtBackend => {
    const backend = opened.get(provider)
    if (backend === undefined) throw new Error(`no ${provider} here`)
    return backend
  }

  it.each(FAMILIES)(
    '%s gives on WASM and WebGPU what transformers gives',
    { timeout: LIMIT_MS },
    async (name) => {
      const example = await readFamily(name)
      for (const provider of ['wasm', 'webgpu']) {
        const sampled = await answer(on(provider), example)
        expect(tokens(sampled), provider).toEqual(example.ids.slice(0, COUNT))
        expect(worstError(sampled, example), provider).toBeLessThan(1e-4)
      }
    },
  )

  it.each(EXPORTS)(
    '$name gives on WASM and WebGPU what its file gives unsplit',
    { timeout: LIMIT_MS },
    async ({ name, tolerance }) => {
      const example = await readExport(name)
      const plain = await answer(on('wasm'), example)
      expect(worstError(plain, example)).toBeLessThan(tolerance)
      if (tolerance < 0.1) expect(tokens(plain)).toEqual(example.ids.slice(0, COUNT))
      const sampled = await answer(on('webgpu'), example)
      expect(tokens(sampled)).toEqual(tokens(plain))
      for (const [i, { logprob }] of sampled.entries())
        expect(Math.abs(logprob - (plain[i]?.logprob ?? NaN))).toBeLessThan(1e-4)
    },
  )
})
