import { mkdir, readFile, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import type { ModelId } from '../core/ids.ts'
import { blockData, checkSource } from '../core/model/make-weight.ts'
import { blockPieces, type Block, type Manifest, type Piece } from '../core/model/manifest.ts'
import type { WeightDtype } from '../core/model/manifest.ts'
import { parseManifest } from '../core/model/parse-manifest.ts'
import { planModel, type BlockPlan } from '../core/model/plan-model.ts'
import type { TensorSource } from '../core/model/tensor-source.ts'
import { writeAtomically } from '../storage/atomic-file.node.ts'
import { openModelDirectory, readModelFile, type ModelDirectory } from './model-directory.node.ts'
import { MANIFEST_FILE, readManifest } from './model-store.node.ts'
import {
  piecesDirectory,
  removeOtherPieces,
  sha256Of,
  writePiece,
  writePieces,
} from './piece-writer.node.ts'
import { importOnnx } from './import-onnx.node.ts'
import { findOnnxModel, type OnnxDtype, type OnnxModel } from './onnx-files.node.ts'
import { hasWeightFiles, openSafetensors } from './safetensors-source.node.ts'

export type ImportOptions = {
  /** Default: the directory's name. */
  readonly id?: ModelId
  /** Of safetensors; default: f16 where the source is f16 or bf16, else f32. Or which ONNX file. */
  readonly dtype?: WeightDtype | OnnxDtype
  /** Tokens; default: the model's own `max_position_embeddings`, at most `CONTEXT_DEFAULT_MAX`. */
  readonly contextLength?: number
}

/** Raised when the bytes that an import makes change, so that old stores are made anew. */
const IMPORT_VERSION = 1
/** Every layer holds rotary tables of this many rows; a window of 131,072 would cost 64 MB in each. */
export const CONTEXT_DEFAULT_MAX = 8192
const WEIGHT_DTYPES: readonly WeightDtype[] = ['f32', 'f16', 'q4']
/** What the store was made from; compared to know whether it's up to date. */
const SOURCE_FILE = 'source.json'

/**
 * Cuts a model in the Hugging Face layout into blocks: writes `manifest.json` and `pieces/<sha256>` into
 * `storeDir`. Does nothing when the store is up to date with the source. A crash leaves the former state.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported (the message names the part)
 */
export async function importModel(
  directory: string,
  storeDir: string,
  options: ImportOptions = {},
): Promise<Manifest> {
  const exported = await findExport(resolve(directory), options)
  if (exported) return importExport(exported, storeDir, options)
  const model = await openModelDirectory(resolve(directory))
  return store({ fingerprint: model.fingerprint, storeDir, options }, () =>
    importBlocks(model, storeDir, options),
  )
}

/** Makes the manifest unless the store is up to date with the source. */
async function store(
  source: { fingerprint: string; storeDir: string; options: ImportOptions },
  make: () => Promise<Manifest>,
): Promise<Manifest> {
  const { storeDir, options, fingerprint } = source
  const stamp = JSON.stringify({ version: IMPORT_VERSION, options, source: fingerprint })
  const current = await readCurrent(storeDir, stamp)
  if (current) return current

  await mkdir(piecesDirectory(storeDir), { recursive: true })
  const manifest = await make()
  // What no device would accept must not be served.
  parseManifest(manifest)
  await writeAtomically(storeDir, MANIFEST_FILE, JSON.stringify(manifest))
  await writeAtomically(storeDir, SOURCE_FILE, stamp)
  await removeOtherPieces(storeDir, new Set(allPieces(manifest).map((piece) => piece.sha256)))
  return manifest
}

/** A directory that has safetensors too is read from them, unless a dtype of ONNX files was asked for. */
async function findExport(path: string, { dtype }: ImportOptions): Promise<OnnxModel | null> {
  const isOwnDtype = dtype === undefined || WEIGHT_DTYPES.some((name) => name === dtype)
  if (isOwnDtype && (await hasWeightFiles(path))) return null
  return findOnnxModel(path, dtype)
}

async function importExport(
  model: OnnxModel,
  storeDir: string,
  options: ImportOptions,
): Promise<Manifest> {
  const opened = await importOnnx(model, CONTEXT_DEFAULT_MAX)
  try {
    const { fingerprint, write } = opened
    const id = options.id ?? modelId(model.directory)
    return await store({ fingerprint, storeDir, options }, () =>
      write(storeDir, { id, contextLength: options.contextLength }),
    )
  } finally {
    await opened.close()
  }
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
  model: ModelDirectory,
  storeDir: string,
  options: ImportOptions,
): Promise<Manifest> {
  const source = await openSafetensors(model.directory)
  try {
    const config = { ...model.config, contextLength: chooseContext(model, options) }
    const dtype = weightDtype(options.dtype) ?? defaultDtype(source)
    const plans = planModel(config, dtype)
    // All names and shapes first: a missing tensor is told before minutes of work.
    for (const plan of plans) for (const { recipe } of plan.weights) checkSource(recipe, source)
    const blocks: Block[] = []
    for (const plan of plans) blocks.push(await importBlock(plan, source, storeDir))
    const files: Record<string, Piece> = {}
    for (const file of model.files) {
      files[file] = await writePiece(storeDir, await readModelFile(model.directory, file))
    }
    const { hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize } = config
    const sizes = { hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize }
    const { architecture, contextLength, eosTokenIds } = config
    const content = { architecture, dtype, ...sizes, contextLength, eosTokenIds, blocks, files }
    const id = options.id ?? modelId(model.directory)
    return { format: 1, id, revision: sha256Of(JSON.stringify(content)), ...content }
  } finally {
    await source.close()
  }
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

function chooseContext({ config }: ModelDirectory, options: ImportOptions): number {
  const wanted = options.contextLength ?? Math.min(config.contextLength, CONTEXT_DEFAULT_MAX)
  if (Number.isInteger(wanted) && wanted > 0 && wanted <= config.contextLength) return wanted
  throw new CrowdError(
    'bad-option',
    `The context length must be from 1 to ${config.contextLength}, not ${wanted}.`,
  )
}

/** @throws CrowdError bad-option for what only ONNX files come in */
function weightDtype(dtype: ImportOptions['dtype']): WeightDtype | undefined {
  const found = WEIGHT_DTYPES.find((name) => name === dtype)
  if (found !== undefined || dtype === undefined) return found
  throw new CrowdError(
    'bad-option',
    `Weights in safetensors are kept as ${WEIGHT_DTYPES.join(', ')}, not ${dtype}.`,
  )
}

function defaultDtype(source: TensorSource): WeightDtype {
  return source.find('model.embed_tokens.weight')?.type === 'f32' ? 'f32' : 'f16'
}

function modelId(directory: string): ModelId {
  const name = basename(directory)
    .replace(/[^\w.:-]+/g, '-')
    .slice(0, 80)
  // Cast: what is left matches the pattern of a model id.
  return (name || 'model') as ModelId
}
