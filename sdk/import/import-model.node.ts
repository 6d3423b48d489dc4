import { mkdir, readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { ModelId } from '../core/ids.ts'
import { blockData } from '../core/model/make-weight.ts'
import { blockPieces, type Block, type Manifest, type Piece } from '../core/model/manifest.ts'
import { isExportWord, type AskedDtype } from '../core/model/onnx/export-files.ts'
import { parseManifest } from '../core/model/parse-manifest.ts'
import type { BlockPlan } from '../core/model/plan-model.ts'
import type { TensorSource } from '../core/model/tensor-source.ts'
import { writeAtomically } from '../storage/atomic-file.node.ts'
import type { ImportOptions } from './import-options.ts'
import { importOnnx, type OpenedOnnx } from './import-onnx.node.ts'
import { readJson } from './model-directory.node.ts'
import { findOnnxModel, type OnnxModel } from './onnx-files.node.ts'
import { hasWeightFiles } from './safetensors-source.node.ts'
import { openModelSource } from './model-source.node.ts'
import type { ModelSource } from './model-source.ts'
import { MANIFEST_FILE, readManifest } from './model-store.node.ts'
import { planSource } from './plan-source.ts'
import {
  piecesDirectory,
  removeOtherPieces,
  sha256Of,
  writePiece,
  writePieces,
} from './piece-writer.node.ts'

/** Raised when the bytes that an import makes change, so that old stores are made anew. */
const IMPORT_VERSION = 5
/** What the store was made from; compared to know whether it's up to date. */
const SOURCE_FILE = 'source.json'

/**
 * Cuts a published model into blocks: writes `manifest.json` and `pieces/<sha256>` into `storeDir`. Does
 * nothing when the store is up to date with the source. A crash leaves the former state.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported (the message names the part)
 */
export async function importModel(
  path: string,
  storeDir: string,
  options: ImportOptions = {},
): Promise<Manifest> {
  const source = await openSource(resolve(path), options)
  try {
    const stamp = JSON.stringify({
      version: IMPORT_VERSION,
      options,
      source: source.fingerprint,
    })
    const current = await readCurrent(storeDir, stamp)
    if (current) return current

    await mkdir(piecesDirectory(storeDir), { recursive: true })
    const { contextLength, onProgress, id = modelId(source.name) } = options
    const manifest =
      'write' in source
        ? await source.write(storeDir, { id, contextLength, onProgress })
        : await importBlocks(source, storeDir, options)
    // What no device would accept must not be served.
    parseManifest(manifest)
    await writeAtomically(storeDir, MANIFEST_FILE, JSON.stringify(manifest))
    await writeAtomically(storeDir, SOURCE_FILE, stamp)
    await removeOtherPieces(storeDir, new Set(allPieces(manifest).map((piece) => piece.sha256)))
    return manifest
  } finally {
    await source.close()
  }
}

async function openSource(
  path: string,
  { dtype }: ImportOptions,
): Promise<ModelSource | OpenedOnnx> {
  const exported = await findExport(path, dtype)
  return exported ? importOnnx(exported) : openModelSource(path)
}

/**
 * The ONNX export that would be imported. A directory that has safetensors too is read from them, unless a dtype of
 * ONNX files was asked for.
 */
async function findExport(path: string, dtype: ImportOptions['dtype']): Promise<OnnxModel | null> {
  const isOwnDtype = dtype === undefined || !isExportWord(dtype)
  return isOwnDtype && (await hasWeightFiles(path)) ? null : findOnnxModel(path, dtype)
}

/** What would be imported, before it is. */
export type LookedAtSource = {
  /** config.json, parsed. */
  readonly config: unknown
  /** null where the weights are in another form. */
  readonly exported: OnnxModel | null
}

/** @throws CrowdError as importModel */
export async function lookAtSource(path: string, dtype?: AskedDtype): Promise<LookedAtSource> {
  const exported = await findExport(path, dtype)
  if (exported) return { config: await readJson(exported.directory, 'config.json'), exported }
  const source = await openModelSource(path)
  await source.close()
  return { config: source.config, exported: null }
}

/** The manifest of a store that was made from the same source and has all its pieces; else null. */
async function readCurrent(storeDir: string, stamp: string): Promise<Manifest | null> {
  const made = await readFile(join(storeDir, SOURCE_FILE), 'utf8').catch(() => null)
  if (made !== stamp) return null
  // A damaged store is made anew, whatever the damage is.
  const manifest = await readManifest(storeDir).catch(() => null)
  if (manifest === null) return null
  for (const piece of allPieces(manifest)) {
    const info = await stat(join(piecesDirectory(storeDir), piece.sha256)).catch(() => null)
    if (info?.size !== piece.bytes) return null
  }
  return manifest
}

function allPieces(manifest: Manifest): Piece[] {
  return [...manifest.blocks.flatMap(blockPieces), ...Object.values(manifest.files)]
}

async function importBlocks(
  source: ModelSource,
  storeDir: string,
  options: ImportOptions,
): Promise<Manifest> {
  const { decoder, dtype, plans, weights } = planSource(source, options)
  const blocks: Block[] = []
  for (const plan of plans) {
    blocks.push(await importBlock(plan, weights, storeDir))
    options.onProgress?.({ doneBlocks: blocks.length, totalBlocks: plans.length })
  }
  const files: Record<string, Piece> = {}
  for (const [file, read] of source.files) files[file] = await writePiece(storeDir, await read())
  const { hiddenSize, headCount, kvHeadCount, headSize, vocabSize } = decoder
  const layerCount = decoder.layers.length
  const sizes = { hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize }
  const { architecture, contextLength, eosTokenIds } = decoder
  const content = { architecture, dtype, ...sizes, contextLength, eosTokenIds, blocks, files }
  const id = options.id ?? modelId(source.name)
  return { format: 1, id, revision: sha256Of(JSON.stringify(content)), ...content }
}

async function importBlock(
  plan: BlockPlan,
  source: TensorSource,
  storeDir: string,
): Promise<Block> {
  const { kind, dataBytes, f32Bytes, table } = plan
  return {
    kind,
    graph: plan.graph === null ? null : await writePiece(storeDir, plan.graph),
    data: await writePieces(storeDir, blockData(plan.weights, source), plan.cuts),
    dataBytes,
    f32Bytes,
    ...(table ? { table } : {}),
  }
}

function modelId(sourceName: string): ModelId {
  const name = sourceName.replace(/[^\w.:-]+/g, '-').slice(0, 80)
  // Cast: what is left matches the pattern of a model id.
  return (name || 'model') as ModelId
}
