import { stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { chooseEos, CONTEXT_DEFAULT_MAX } from '../core/families/parse-decoder.ts'
import type { ModelId } from '../core/ids.ts'
import type { Block, Manifest, Piece } from '../core/model/manifest.ts'
import { copiedData } from '../core/model/onnx/copy-weights.ts'
import { parseOnnxConfig, type OnnxConfig } from '../core/model/onnx/onnx-config.ts'
import { planOnnx, type OnnxBlockPlan } from '../core/model/onnx/plan-onnx.ts'
import { MODEL_FILES, readJson, readModelFile } from './model-directory.node.ts'
import type { OnnxModel } from './onnx-files.node.ts'
import { openOnnx, type OnnxSource } from './onnx-source.node.ts'
import { sha256Of, writePiece, writePieces } from './piece-writer.node.ts'
import { isFile } from './safetensors-source.node.ts'

/** An export that was looked at; its weights are read block by block. */
export type OpenedOnnx = {
  /** What it is called where nobody names it. */
  readonly name: string
  /** Changes when any source file does: names, sizes and times. */
  readonly fingerprint: string
  /** Writes the pieces. `contextLength`: tokens to serve, at most what the model takes. */
  readonly write: (
    storeDir: string,
    options: { readonly id: ModelId; readonly contextLength: number | undefined },
  ) => Promise<Manifest>
  readonly close: () => Promise<void>
}

/** @throws CrowdError model-invalid, model-unsupported (the part is named) */
export async function importOnnx(model: OnnxModel): Promise<OpenedOnnx> {
  const { directory, file } = model
  const files = await modelFiles(directory)
  const generation = await readJson(directory, 'generation_config.json')
  const config = parseOnnxConfig(await readJson(directory, 'config.json'))
  const source = await openOnnx(file)
  return {
    name: basename(directory),
    fingerprint: await fingerprint([
      join(directory, 'config.json'),
      ...files.map((name) => join(directory, name)),
      ...source.files,
    ]),
    write: async (storeDir, { id, contextLength }) => {
      const wanted = contextLength ?? Math.min(config.contextLength, CONTEXT_DEFAULT_MAX)
      const plan = planOnnx(source.graph, config, checkContext(wanted, config))
      const blocks: Block[] = []
      for (const block of plan.blocks) blocks.push(await writeBlock(block, source, storeDir))
      const pieces: Record<string, Piece> = {}
      for (const name of files) {
        pieces[name] = await writePiece(storeDir, await readModelFile(directory, name))
      }
      const { hiddenSize, kvHeadCount, headSize, vocabSize, dtype } = plan
      const content = {
        architecture: config.architecture,
        dtype,
        hiddenSize,
        layerCount: plan.blocks.length - 2,
        headCount: config.headCount,
        kvHeadCount,
        headSize,
        vocabSize,
        contextLength: plan.contextLength,
        eosTokenIds: chooseEos(config.eosTokenIds, generation, vocabSize),
        blocks,
        files: pieces,
      }
      return { format: 1, id, revision: sha256Of(JSON.stringify(content)), ...content }
    },
    close: source.close,
  }
}

async function writeBlock(
  plan: OnnxBlockPlan,
  source: OnnxSource,
  storeDir: string,
): Promise<Block> {
  const { kind, dataBytes, f32Bytes, table, cuts, weights } = plan
  return {
    kind,
    graph: plan.graph === null ? null : await writePiece(storeDir, plan.graph),
    data: await writePieces(storeDir, copiedData(weights, source.read), cuts),
    dataBytes,
    f32Bytes,
    ...(table ? { table } : {}),
  }
}

async function modelFiles(directory: string): Promise<string[]> {
  const present = await Promise.all(MODEL_FILES.map((name) => isFile(join(directory, name))))
  const files = MODEL_FILES.filter((_, i) => present[i])
  if (files.includes(MODEL_FILES[0])) return files
  throw new CrowdError('model-invalid', `${directory} has no ${MODEL_FILES[0]}.`)
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
