import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BlockRange } from '../../sdk/core/model/block-range.ts'
import type { Manifest } from '../../sdk/core/model/manifest.ts'
import { importModel } from '../../sdk/import/import-model.node.ts'
import { readBlock } from '../../sdk/import/model-store.node.ts'
import { openBlocks } from '../support/block-chain.ts'
import { greedy, worstDifference } from '../support/chained-blocks.ts'
import { testBackend } from '../support/node-backends.ts'
import { openStageChain } from '../support/stage-chain.ts'
import { openUnsplitOnnx } from '../support/unsplit-onnx.ts'
import type { FamilyRow } from './compare.ts'

/** What ONNX Runtime's Python package, or transformers, makes of the exporter's file. */
type OnnxReference = {
  readonly file: string
  readonly dtype: string
  readonly promptIds: readonly number[]
  readonly ids: readonly number[]
  readonly logits: readonly (readonly number[])[]
}

const ROOT = fileURLToPath(new URL('../fixtures/reference/onnx/', import.meta.url))

export async function listExports(): Promise<string[]> {
  return (await readdir(ROOT)).sort()
}

/** Exports whose activations are quantised as they come, with one scale for all tokens of a run. */
const DYNAMIC: ReadonlySet<string> = new Set(['int8', 'uint8'])

/** An exporter's file, imported and cut, against what was made of it unsplit. */
export async function compareExport(name: string): Promise<FamilyRow> {
  const directory = join(ROOT, name)
  // Cast: the fixture's own format.
  const reference = JSON.parse(
    await readFile(join(directory, 'reference.json'), 'utf8'),
  ) as OnnxReference
  const store = await mkdtemp(join(tmpdir(), 'crowdinfer-families-'))
  try {
    const manifest = await importModel(directory, store)
    const read = (block: number): ReturnType<typeof readBlock> => readBlock(store, manifest, block)
    const { promptIds, ids, logits, dtype } = reference
    const chain = await openBlocks(testBackend('cpu').ort, manifest, read, 'cpu')
    const run = { count: ids.length, chunk: promptIds.length, vocabSize: manifest.vocabSize }
    const got = await greedy(chain, promptIds, run)
    await chain.close()
    const unsplit = join(directory, reference.file)
    const rows = DYNAMIC.has(dtype)
      ? await tokenByToken(unsplit, manifest, reference)
      : logits.map((row) => Float32Array.from(row))
    const same = ids.filter((id, i) => got.ids[i] === id)
    return {
      family: name,
      source: 'onnx',
      dtype,
      maxLogitError: worstDifference(got.logits.slice(0, rows.length), rows),
      greedyAgreement: same.length / ids.length,
      splitEqualsWhole: await everyCutGives(got.ids, { manifest, read, promptIds }),
    }
  } finally {
    await rm(store, { recursive: true, force: true })
  }
}

/** Logits of the unsplit file where each token runs alone, as the blocks treat it. */
async function tokenByToken(
  file: string,
  manifest: Manifest,
  { promptIds, logits }: OnnxReference,
): Promise<Float32Array[]> {
  const whole = await openUnsplitOnnx(file, manifest)
  const run = { count: logits.length, chunk: 1, vocabSize: manifest.vocabSize }
  const { logits: rows } = await greedy(whole, promptIds, run)
  await whole.close()
  return rows
}

async function everyCutGives(
  ids: readonly number[],
  model: {
    readonly manifest: Manifest
    readonly read: (block: number) => ReturnType<typeof readBlock>
    readonly promptIds: readonly number[]
  },
): Promise<boolean> {
  const { manifest, read, promptIds } = model
  const end = manifest.layerCount + 2
  for (let cut = 1; cut < end; cut++) {
    const ranges: BlockRange[] = [
      { start: 0, end: cut },
      { start: cut, end },
    ]
    const chain = await openStageChain(testBackend('cpu'), manifest, { ranges, readBlock: read })
    const got = await chain.generate(promptIds, { count: ids.length, chunk: promptIds.length })
    await chain.close()
    if (got.join() !== ids.join()) return false
  }
  return true
}
