import { readdirSync, readFileSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as ort from 'onnxruntime-node'
import { afterAll, describe, expect, it } from 'vitest'
import { createTokenizer } from '../../sdk/client/tokenizer.hf.ts'
import type { Tokenizer } from '../../sdk/client/tokenizer.ts'
import { baseNames } from '../../sdk/core/families/base-names.ts'
import { parseDecoder } from '../../sdk/core/families/parse-decoder.ts'
import { readMetadata } from '../../sdk/core/gguf/metadata.ts'
import { tokenizerFiles } from '../../sdk/core/gguf/tokenizer-json.ts'
import { readVocabulary } from '../../sdk/core/gguf/vocabulary.ts'
import { asFloats } from '../../sdk/core/tensor/views.ts'
import { openPart, readGgufHeader } from '../../sdk/import/gguf-header.node.ts'
import { openGguf } from '../../sdk/import/gguf-source.node.ts'
import type { ModelSource } from '../../sdk/import/model-source.ts'
import { greedy, openChain, openWhole, worstDifference } from '../support/chained-blocks.ts'
import { createTestModel } from '../support/models.ts'

const ROOT = join(import.meta.dirname, '../fixtures/reference')
const FILES = readdirSync(join(ROOT, 'gguf'))
/** Made for the architecture llama, whose converter doesn't write that no space is put first; gemma2-q8_0 has that. */
const UNSAID = 'spm-gemma.gguf'
const VOCABULARIES = readdirSync(join(ROOT, 'gguf-tokenizers'))
  .filter((file) => file.endsWith('.gguf') && file !== UNSAID)
  .map((file) => file.replace('.gguf', ''))
/** f32 sums in another order. */
const TOLERANCE = 2e-3
const CHUNK = 7

type Case = { readonly text: string; readonly ids: readonly number[] }
type Reference = {
  readonly promptIds: readonly number[]
  readonly greedyIds: readonly number[]
  readonly vocabSize: number
  readonly tokenizerCases?: readonly Case[]
}

type Vocabulary = { readonly cases: readonly Case[] }

// Cast: our own fixtures, whose shape reference.test.ts checks.
const read = (path: string): Reference & Vocabulary =>
  JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Reference & Vocabulary

const opened: ModelSource[] = []
afterAll(() => Promise.all(opened.map((source) => source.close())))

async function open(path: string): Promise<ModelSource> {
  const source = await openGguf(join(ROOT, path))
  opened.push(source)
  return source
}

/** Some files have a vocabulary only. */
async function tokenizerOf(file: string): Promise<Tokenizer> {
  const handle = await openFile(join(ROOT, file), 'r')
  const { metadata: entries } = await openPart(handle, file)
    .then(readGgufHeader)
    .finally(() => handle.close())
  const metadata = readMetadata(entries, file)
  const { tokenizer, tokenizerConfig } = tokenizerFiles(readVocabulary(metadata, 1 << 20, file), '')
  return createTokenizer({ tokenizerJson: tokenizer, tokenizerConfig })
}

describe('files by llama.cpp’s converter', () => {
  it('are there for every architecture that is read', () => {
    expect(FILES.length).toBeGreaterThan(20)
    expect(VOCABULARIES.length).toBeGreaterThan(4)
  })

  it.each(FILES)('%s: logits and greedy ids of the reference, whole and cut', async (name) => {
    const reference = read(`gguf/${name}/reference.json`)
    const { promptIds, greedyIds, vocabSize } = reference
    const want = asFloats(readFileSync(join(ROOT, 'gguf', name, 'logits.f32')))
    const source = await open(`gguf/${name}/model.gguf`)
    const decoder = { ...parseDecoder(source.config, source.generationConfig), eosTokenIds: [] }
    const model = createTestModel(decoder, 'f32', baseNames(source.weights))
    const last = promptIds.length - 1
    const rows = greedyIds.map((_, i) =>
      want.subarray((last + i) * vocabSize, (last + i + 1) * vocabSize),
    )
    const run = { count: greedyIds.length, chunk: CHUNK, vocabSize }
    const borders = decoder.layers.map((_, layer) => layer + 1)
    for (const decode of [
      await openWhole(ort, model, 'cpu'),
      await openChain(ort, model, { provider: 'cpu', cuts: borders }),
    ]) {
      const got = await greedy(decode, promptIds, run)
      await decode.close()
      expect(got.ids).toEqual(greedyIds)
      expect(worstDifference(got.logits, rows)).toBeLessThan(TOLERANCE)
    }
  })

  const withCases = FILES.map((name) => `gguf/${name}`)
    .filter((path) => read(`${path}/reference.json`).tokenizerCases)
    .map((path) => [`${path}/model.gguf`, `${path}/reference.json`, 'tokenizerCases'] as const)
  const vocabularies = VOCABULARIES.map((name) => `gguf-tokenizers/${name}`).map(
    (path) => [`${path}.gguf`, `${path}.json`, 'cases'] as const,
  )

  it.each([...withCases, ...vocabularies])(
    '%s: ids of the tokenizer',
    async (file, results, key) => {
      const cases = read(results)[key] ?? []
      expect(cases.length).toBeGreaterThan(4)
      const encode = encoder(await tokenizerOf(file))
      expect(cases.map(({ text }) => encode(text))).toEqual(cases.map(({ ids }) => ids))
    },
  )
})

/** Ids without the token that begins every prompt; control tokens may be spelled. */
function encoder(tokenizer: Tokenizer): (text: string) => number[] {
  const start = tokenizer.encode('').length
  return (text) => tokenizer.encode(text, { control: true }).slice(start)
}
