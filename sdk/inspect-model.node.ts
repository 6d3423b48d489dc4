import { CrowdError } from './core/errors.ts'
import { isRecord } from './core/model/json-fields.ts'
import type { Manifest, WeightDtype } from './core/model/manifest.ts'
import { asWeightDtype, type AskedDtype } from './core/model/onnx/export-files.ts'
import type { HubOptions } from './hub/hub-options.ts'
import { readModelRef } from './hub/model-ref.ts'
import { describeOrigin } from './import/known-model.ts'
import { importOnnx } from './import/import-onnx.node.ts'
import { lookAtSource } from './import/import-model.node.ts'
import { openModelSource } from './import/model-source.node.ts'
import type { ModelSource } from './import/model-source.ts'
import { readManifest, readPiece } from './import/model-store.node.ts'
import { findKnownModel, openKnownModel, storeDirectory } from './import/model-registry.node.ts'
import type { OnnxModel } from './import/onnx-files.node.ts'
import {
  previewConfig,
  previewPlans,
  readTraits,
  type ModelTraits,
  type PreviewedModel,
} from './import/preview-model.ts'
import { planSource } from './import/plan-source.ts'
import { findModel, type FoundModel } from './import/stored-model.node.ts'
import { findOnHub } from './find-on-hub.node.ts'
import { lookAtHubGguf } from './look-at-hub-gguf.node.ts'
import { reportSizes, type ModelSizes } from './model-report.ts'

export type ModelReport = ModelSizes & {
  readonly name: string
  /** What it was or would be made of. */
  readonly from: string
  /** `ready`: blocks lie on this disk. `preview`: planned from its config and headers. */
  readonly state: 'ready' | 'preview'
  readonly architecture: string
  readonly dtype: WeightDtype
  readonly layerCount: number
  readonly hiddenSize: number
  readonly headCount: number
  readonly kvHeadCount: number
  readonly vocabSize: number
  /** Tokens; every size and count of devices is for this context. */
  readonly contextLength: number
  readonly tiedEmbedding: boolean
  /** null = not known. */
  readonly chatTemplate: boolean | null
  /** 0 = no mixture; null = not known. */
  readonly experts: number | null
  /** Tokens; 0 = none; null = not known. */
  readonly slidingWindow: number | null
}

export type InspectRequest = {
  /** A name, a path, or a hub's id. */
  readonly model: string
  readonly dataDir: string
  readonly hub: HubOptions
  readonly signal: AbortSignal
  readonly dtype?: AskedDtype | undefined
  readonly contextLength?: number | undefined
}

/**
 * What a model is and needs; downloads no weights.
 * @throws CrowdError model-not-found, model-invalid, model-unsupported, hub-unavailable, hub-denied, bad-option
 */
export async function inspectModel(request: InspectRequest): Promise<ModelReport> {
  const found = await findModel(request.model, request.dataDir)
  if (found?.kind === 'added') return inspectAdded(request, found)
  if (found !== null) return inspectPath(request, found)
  const ref = readModelRef(request.model)
  if (ref === null) {
    const message = `There is no model, path or hub's id "${request.model}".`
    throw new CrowdError('model-not-found', message)
  }
  const model = await findOnHub(request.hub, ref, {
    dtype: request.dtype ?? null,
    signal: request.signal,
  })
  const own = { name: ref.repo, from: describeOrigin(model.origin) }
  if (model.chosen.kind === 'gguf') {
    const source = await lookAtHubGguf(request.hub, model, request.signal)
    const planned = previewPlans(planSource(source, request))
    const chatTemplate = await sourceTemplate(source)
    return previewReport(
      request,
      { model: planned, config: source.config },
      { ...own, chatTemplate },
    )
  }
  if (model.chosen.kind !== 'safetensors') {
    const message = `${request.model} is an ONNX export, which is only read once it's here: add it first.`
    throw new CrowdError('model-unsupported', message)
  }
  const { config } = model
  const paths = model.listing.files.map(({ path }) => path)
  const dtype = asWeightDtype(request.dtype ?? ownDtype(config), ref.repo)
  const previewed = previewConfig(config, dtype, request.contextLength)
  return previewReport(
    request,
    { model: previewed, config },
    {
      name: ref.repo,
      from: describeOrigin(model.origin),
      // Most templates stand in tokenizer_config.json, which isn't looked into from afar.
      chatTemplate: paths.includes('chat_template.jinja') ? true : null,
    },
  )
}

async function inspectAdded(
  request: InspectRequest,
  { known }: Extract<FoundModel, { kind: 'added' }>,
): Promise<ModelReport> {
  const { storeDir, manifest } = await openKnownModel(request.dataDir, known)
  return {
    ...(await readyReport(request, storeDir, manifest)),
    name: known.name,
    from: describeOrigin(known.origin),
    experts: known.experts,
    slidingWindow: known.slidingWindow,
  }
}

async function inspectPath(
  request: InspectRequest,
  found: Exclude<FoundModel, { kind: 'added' }>,
): Promise<ModelReport> {
  const { name, path, kind } = found
  const from = kind === 'builtin' ? 'built in' : path
  const storeDir = storeDirectory(request.dataDir, name)
  const isAdded = (await findKnownModel(request.dataDir, name)) !== null
  // What was cut for a host already needs no guess.
  const manifest = isAdded ? null : await readManifest(storeDir).catch(() => null)
  const { config, exported } = await lookAtSource(path, request.dtype)
  if (exported) {
    const own = { name, from, exported, config }
    if (manifest === null || request.dtype !== undefined) return exportReport(request, own)
    const traits = pick(readTraits(config))
    return { ...(await readyReport(request, storeDir, manifest)), name, from, ...traits }
  }
  const source = await openModelSource(path)
  try {
    if (manifest === null || request.dtype !== undefined) {
      const chatTemplate = await sourceTemplate(source)
      const model = previewPlans(planSource(source, request))
      return previewReport(request, { model, config }, { name, from, chatTemplate })
    }
    const traits = pick(readTraits(config))
    return { ...(await readyReport(request, storeDir, manifest)), name, from, ...traits }
  } finally {
    await source.close()
  }
}

/** Of an export, by its graph; its weights are not read, and nothing is kept. */
async function exportReport(
  request: InspectRequest,
  own: {
    readonly name: string
    readonly from: string
    readonly exported: OnnxModel
    readonly config: unknown
  },
): Promise<ModelReport> {
  const { name, from, exported, config } = own
  const source = await importOnnx(exported)
  try {
    const { model, tied } = source.preview(request.contextLength)
    const chatTemplate = await hasTemplate(async (file) => {
      const bytes = await source.readFile(file)
      return bytes === null ? null : new TextDecoder().decode(bytes)
    })
    return {
      name,
      from,
      chatTemplate,
      state: 'preview',
      ...shapeOf(model, request),
      ...pick(readTraits(config)),
      ...sizesOf(model, request, tied),
    }
  } finally {
    await source.close()
  }
}

function pick({
  experts,
  slidingWindow,
}: ModelTraits): Pick<ModelTraits, 'experts' | 'slidingWindow'> {
  return { experts, slidingWindow }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new CrowdError('model-invalid', `${file} is not JSON.`, { cause })
  }
}

async function readyReport(
  request: InspectRequest,
  storeDir: string,
  manifest: Manifest,
): Promise<Omit<ModelReport, 'name' | 'from' | 'experts' | 'slidingWindow'>> {
  if (request.dtype !== undefined && request.dtype !== manifest.dtype) {
    const message = `--dtype: ${manifest.id} was made as ${manifest.dtype}; the table shows the other dtypes`
    throw new CrowdError('bad-option', message)
  }
  const tied = isTied(manifest)
  const chatTemplate = await hasTemplate(async (file) => {
    const piece = manifest.files[file]
    if (piece === undefined) return null
    return new TextDecoder().decode(await readPiece(storeDir, piece.sha256))
  })
  return {
    state: 'ready',
    ...shapeOf(manifest, request),
    chatTemplate,
    ...sizesOf(manifest, request, tied),
  }
}

function previewReport(
  request: InspectRequest,
  { model, config }: { readonly model: PreviewedModel; readonly config: unknown },
  rest: Pick<ModelReport, 'name' | 'from' | 'chatTemplate'>,
): ModelReport {
  const { experts, slidingWindow, tied } = readTraits(config)
  const shape = shapeOf(model, request)
  return {
    ...rest,
    state: 'preview',
    ...shape,
    experts,
    slidingWindow,
    ...sizesOf(model, request, tied),
  }
}

/** What importing would most likely choose, where only config.json is read. */
function ownDtype(config: unknown): WeightDtype {
  const fields = isRecord(config) ? config : {}
  return (fields['torch_dtype'] ?? fields['dtype']) === 'float32' ? 'f32' : 'f16'
}

function shapeOf(model: PreviewedModel | Manifest, { contextLength }: InspectRequest) {
  const { architecture, dtype, layerCount, hiddenSize, headCount, kvHeadCount, vocabSize } = model
  const shape = { architecture, dtype, layerCount, hiddenSize, headCount, kvHeadCount, vocabSize }
  return { ...shape, contextLength: contextLength ?? model.contextLength }
}

function sizesOf(model: PreviewedModel | Manifest, request: InspectRequest, tied: boolean) {
  const contextLength = request.contextLength ?? model.contextLength
  return { tiedEmbedding: tied, ...reportSizes({ ...model, contextLength }, tied) }
}

/** The head's pieces are the embedding's. */
function isTied({ blocks }: Manifest): boolean {
  const head = new Set(blocks.at(-1)?.data.map(({ sha256 }) => sha256))
  return blocks[0]?.data.every(({ sha256 }) => head.has(sha256)) ?? false
}

function sourceTemplate({ files }: Pick<ModelSource, 'files'>): Promise<boolean> {
  return hasTemplate(async (file) => {
    const bytes = await files.get(file)?.()
    return bytes === undefined ? null : new TextDecoder().decode(bytes)
  })
}

async function hasTemplate(read: (file: string) => Promise<string | null>): Promise<boolean> {
  if ((await read('chat_template.jinja')) !== null) return true
  const text = await read('tokenizer_config.json')
  if (text === null) return false
  const json = parseJson(text, 'tokenizer_config.json')
  return isRecord(json) && json['chat_template'] !== undefined && json['chat_template'] !== null
}
