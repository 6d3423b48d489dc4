import { stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { chooseEos, CONTEXT_DEFAULT_MAX } from '../core/families/parse-decoder.ts'
import type { ModelId } from '../core/ids.ts'
import type { Block, Manifest, Piece } from '../core/model/manifest.ts'
import { copiedData } from '../core/model/onnx/copy-weights.ts'
import { parseOnnxConfig, type OnnxConfig } from '../core/model/onnx/onnx-config.ts'
import { sourceKey, type CopiedWeight } from '../core/model/onnx/layout-copies.ts'
import { planOnnx, type OnnxBlockPlan, type OnnxPlan } from '../core/model/onnx/plan-onnx.ts'
import type { ImportOptions } from './import-options.ts'
import { presentModelFiles, readJson, readModelFile } from './model-directory.node.ts'
import type { OnnxModel } from './onnx-files.node.ts'
import { openOnnx, type OnnxSource } from './onnx-source.node.ts'
import type { PreviewedModel } from './preview-model.ts'
import { sha256Of, writePiece, writePieces } from './piece-writer.node.ts'

/** An export that was looked at; its weights are read block by block. */
export type OpenedOnnx = {
  /** What it is called where nobody names it. */
  readonly name: string
  /** Changes when any source file does: names, sizes and times. */
  readonly fingerprint: string
  /** Writes the pieces. `contextLength`: tokens to serve, at most what the model takes. */
  readonly write: (
    storeDir: string,
    options: {
      readonly id: ModelId
      readonly contextLength: number | undefined
      readonly onProgress: ImportOptions['onProgress']
    },
  ) => Promise<Manifest>
  /** What `write` would make, from the graph alone. */
  readonly preview: (contextLength: number | undefined) => PreviewedExport
  /** A file that comes with the model; null where there is none. */
  readonly readFile: (name: string) => Promise<Uint8Array | null>
  readonly close: () => Promise<void>
}

export type PreviewedExport = { readonly model: PreviewedModel; readonly tied: boolean }

/** @throws CrowdError model-invalid, model-unsupported (the part is named) */
export async function importOnnx(model: OnnxModel): Promise<OpenedOnnx> {
  const { directory, file } = model
  const files = await presentModelFiles(directory)
  const generation = await readJson(directory, 'generation_config.json')
  const config = parseOnnxConfig(await readJson(directory, 'config.json'))
  const source = await openOnnx(file)
  const planFor = (contextLength: number | undefined): OnnxPlan => {
    const wanted = contextLength ?? Math.min(config.contextLength, CONTEXT_DEFAULT_MAX)
    return planOnnx(source.graph, config, checkContext(wanted, config))
  }
  return {
    name: basename(directory),
    fingerprint: await fingerprint([
      join(directory, 'config.json'),
      ...files.map((name) => join(directory, name)),
      ...source.files,
    ]),
    write: async (storeDir, { id, contextLength, onProgress }) => {
      const plan = planFor(contextLength)
      const blocks: Block[] = []
      for (const block of plan.blocks) {
        blocks.push(await writeBlock(block, source, storeDir))
        onProgress?.({ doneBlocks: blocks.length, totalBlocks: plan.blocks.length })
      }
      const pieces: Record<string, Piece> = {}
      for (const name of files) {
        pieces[name] = await writePiece(storeDir, await readModelFile(directory, name))
      }
      const eosTokenIds = chooseEos(config.eosTokenIds, generation, plan.vocabSize)
      const content = { ...shapeOf(plan, config), eosTokenIds, blocks, files: pieces }
      return { format: 1, id, revision: sha256Of(JSON.stringify(content)), ...content }
    },
    preview: (contextLength) => {
      const plan = planFor(contextLength)
      return {
        model: { ...shapeOf(plan, config), blocks: plan.blocks.map(unwritten) },
        tied: isTied(plan),
      }
    },
    readFile: async (name) =>
      files.some((one) => one === name) ? await readModelFile(directory, name) : null,
    close: source.close,
  }
}

function shapeOf(
  { hiddenSize, kvHeadCount, headSize, vocabSize, dtype, contextLength, blocks }: OnnxPlan,
  { architecture, headCount }: OnnxConfig,
): Omit<PreviewedModel, 'blocks'> {
  const layerCount = blocks.length - 2
  const sizes = { hiddenSize, layerCount, headCount, kvHeadCount, headSize, vocabSize }
  return { architecture, dtype, ...sizes, contextLength }
}

function unwritten({ kind, dataBytes, f32Bytes, weightCount }: OnnxBlockPlan): Block {
  return { kind, dataBytes, f32Bytes, weightCount, graph: null, data: [] }
}

/** The head's data begin with the table's. */
function isTied({ blocks }: OnnxPlan): boolean {
  const head = blocks.at(-1)?.weights ?? []
  const table = blocks[0]?.weights ?? []
  const key = (weight: CopiedWeight | undefined): string =>
    weight === undefined
      ? ''
      : `${weight.form} ${weight.offset} ${sourceKey({ ...weight, data: weight.source })}`
  return table.length > 0 && table.every((weight, i) => key(weight) === key(head[i]))
}

async function writeBlock(
  plan: OnnxBlockPlan,
  source: OnnxSource,
  storeDir: string,
): Promise<Block> {
  const { graph, weights, cuts, ...sizes } = plan
  return {
    ...sizes,
    graph: graph === null ? null : await writePiece(storeDir, graph),
    data: await writePieces(storeDir, copiedData(weights, source.read), cuts),
  }
}

function checkContext(wanted: number, { contextLength }: OnnxConfig): number {
  if (Number.isInteger(wanted) && wanted > 0 && wanted <= contextLength) return wanted
  throw new CrowdError(
    'bad-option',
    `The context length must be from 1 to ${contextLength}, not ${wanted}.`,
  )
}

async function fingerprint(paths: readonly string[]): Promise<string> {
  const lines = await Promise.all(
    paths.map(async (path) => {
      const { size, mtimeMs } = await stat(path)
      return `${basename(path)} ${size} ${mtimeMs}`
    }),
  )
  return lines.join('\n')
}
