import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from './core/errors.ts'
import type { ModelId } from './core/ids.ts'
import type { Manifest } from './core/model/manifest.ts'
import {
  asWeightDtype,
  type AskedDtype,
  type ExportChoice,
} from './core/model/onnx/export-files.ts'
import { checkDiskSpace } from './hub/disk-space.node.ts'
import { downloadFiles, missingBytes, type FilesProgress } from './hub/download-files.node.ts'
import { lockFolder } from './hub/folder-lock.node.ts'
import type { HubOptions } from './hub/hub-options.ts'
import { downloadDirectory, removeDownload } from './hub/kept-downloads.node.ts'
import { formatModelRef, readModelRef } from './hub/model-ref.ts'
import { importModel, lookAtSource } from './import/import-model.node.ts'
import type { ImportOptions, ImportProgress } from './import/import-options.ts'
import { isModelName, type KnownModel, type ModelOrigin } from './import/known-model.ts'
import {
  findKnownModel,
  listKnownModels,
  openKnownModel,
  removeUnfinished,
  storeDirectory,
  writeKnownModel,
  type AddedModel,
} from './import/model-registry.node.ts'
import { planSource } from './import/plan-source.ts'
import { previewConfig, readTraits } from './import/preview-model.ts'
import { builtinModels, nameOfPath, resolveModel } from './import/resolve-model.node.ts'
import { builtinDirectory } from './import/stored-model.node.ts'
import { findOnHub, type HubModel } from './find-on-hub.node.ts'
import { lookAtHubGguf } from './look-at-hub-gguf.node.ts'

export type AddModelRequest = {
  /** A hub's id (`org/name[@revision][:part]`), a directory, a `.gguf` or an `.onnx` file. */
  readonly source: string
  readonly dataDir: string
  readonly hub: HubOptions
  readonly signal: AbortSignal
  /** How weights are to be kept, or which of the files of an ONNX export is meant. */
  readonly dtype?: AskedDtype | undefined
  readonly name?: string | undefined
  readonly contextLength?: number | undefined
  /** Keeps what was downloaded beside the blocks that were made of it. */
  readonly keepSource?: boolean | undefined
  readonly on?: AddModelEvents
}

export type AddModelEvents = {
  /** Before anything large is fetched; false stops. */
  readonly confirm?: (plan: AddPlan) => Promise<boolean>
  /** Hears which of the files of an ONNX export is taken. */
  readonly choice?: (choice: ExportChoice) => void
  readonly download?: (progress: FilesProgress) => void
  readonly import?: (progress: ImportProgress) => void
}

export type AddPlan = {
  readonly name: string
  readonly from: string
  readonly downloadBytes: number
  readonly storeBytes: number
  readonly directory: string
}

/** What importing is given. */
type Source = {
  readonly path: string
  readonly origin: ModelOrigin
  /** To be deleted afterwards; null for what is the owner's own. */
  readonly downloaded: string | null
}

/**
 * Adds a model under a name: downloads it where it comes from a hub, cuts it into blocks, and makes it known. What
 * was added before, in the same form, is only opened. A killed call goes on where it stopped when it's made again.
 * @throws CrowdError bad-option (name, dtype, context), model-*, hub-*, storage-*, download-corrupt, aborted
 */
export async function addModel(request: AddModelRequest): Promise<AddedModel> {
  const { source, dataDir } = request
  const local = await resolveModel(source, builtinDirectory())
  if (local?.kind === 'builtin') {
    throw new CrowdError('bad-option', `${source} is built in: it needs not be added`)
  }
  if (local !== null) {
    const origin: ModelOrigin = { kind: 'path', path: local.path }
    const name = await chooseName(request, nameOfPath(local.path))
    const present = await alreadyAdded(request, name, origin)
    if (present !== null) return present
    return finish(request, name, { path: local.path, origin, downloaded: null })
  }
  const ref = readModelRef(source)
  if (ref === null) {
    const message = `There is no directory or model file "${source}", and a hub's id is org/name.`
    throw new CrowdError('model-not-found', message)
  }
  const name = await chooseName(request, ref.repo.split('/')[1] ?? '')
  const found = await findOnHub(request.hub, ref, {
    dtype: request.dtype ?? null,
    signal: request.signal,
  })
  const present = await alreadyAdded(request, name, found.origin)
  if (present !== null) return present
  if (found.chosen.choice) request.on?.choice?.(found.chosen.choice)
  const directory = downloadDirectory(dataDir, ref.repo, found.listing.commit)
  const downloaded = await download(request, { name, found, directory, from: formatModelRef(ref) })
  return finish(request, name, downloaded)
}

/** Given, or the source's own with what was asked for. */
async function chooseName({ name, dtype }: AddModelRequest, own: string): Promise<string> {
  const chosen = name ?? nameOfPath(dtype === undefined ? own : `${own.slice(0, 74)}-${dtype}`)
  if (!isModelName(chosen)) {
    const allowed = 'letters, digits, ".", "-" and "_", at most 80'
    throw new CrowdError('bad-option', `--name: "${chosen}" is no name: it may hold ${allowed}`)
  }
  if (!(await builtinModels(builtinDirectory())).includes(chosen)) return chosen
  throw new CrowdError(
    'bad-option',
    `${chosen} is the name of a built-in model: give another --name`,
  )
}

/** @throws CrowdError bad-option where the name stands for something else */
async function alreadyAdded(
  request: AddModelRequest,
  name: string,
  origin: ModelOrigin,
): Promise<AddedModel | null> {
  const known = await findKnownModel(request.dataDir, name)
  if (known === null) return null
  const isSame =
    sameOrigin(known.origin, origin) &&
    known.askedDtype === (request.dtype ?? null) &&
    known.askedContext === (request.contextLength ?? null)
  // A directory may hold something else by now: importing looks.
  if (isSame) return origin.kind === 'path' ? null : openKnownModel(request.dataDir, known)
  const message = `there is a model ${name} already, made from another source or with other options: remove it, or give another --name`
  throw new CrowdError('bad-option', message)
}

function sameOrigin(a: ModelOrigin, b: ModelOrigin): boolean {
  if (a.kind === 'path' || b.kind === 'path') {
    return a.kind === 'path' && b.kind === 'path' && a.path === b.path
  }
  return a.repo === b.repo && a.commit === b.commit && a.part === b.part
}

async function download(
  request: AddModelRequest,
  what: {
    readonly name: string
    readonly found: HubModel
    readonly directory: string
    readonly from: string
  },
): Promise<Source> {
  const { found, directory, name } = what
  const { chosen, listing, origin } = found
  const { hub, signal, on } = request
  // What the config or the header alone says to be impossible is told before hours of download.
  const storeBytes = await estimateStore(request, found)
  const downloadBytes = await missingBytes(chosen.files, directory)
  await checkDiskSpace(directory, { 'the download': downloadBytes, 'its blocks': storeBytes })
  const plan = { name, from: what.from, downloadBytes, storeBytes, directory }
  if ((await on?.confirm?.(plan)) === false) throw new CrowdError('aborted', 'nothing was added')
  await mkdir(directory, { recursive: true })
  const free = await lockFolder(directory)
  try {
    const { files } = chosen
    const onProgress = on?.download ? { onProgress: on.download } : {}
    await downloadFiles(hub, { listing, files, directory, signal, ...onProgress })
  } finally {
    await free()
  }
  const path = chosen.entry === '' ? directory : join(directory, ...chosen.entry.split('/'))
  return { path, origin, downloaded: directory }
}

/** Plans what can be planned from afar; where only importing tells, a little more than the download. */
async function estimateStore(request: AddModelRequest, found: HubModel): Promise<number> {
  const { chosen, config } = found
  const bytes = chosen.files.reduce((sum, file) => sum + file.bytes, 0)
  if (chosen.kind === 'gguf') {
    const source = await lookAtHubGguf(request.hub, found, request.signal)
    return plannedBytes(planSource(source, request).plans)
  }
  if (chosen.kind !== 'safetensors') return Math.ceil(bytes * 1.3)
  const dtype = asWeightDtype(request.dtype ?? 'f16', 'It')
  const planned = plannedBytes(previewConfig(config, dtype, request.contextLength).blocks)
  return request.dtype === undefined ? Math.max(bytes, planned) : planned
}

function plannedBytes(blocks: readonly { readonly dataBytes: number }[]): number {
  return blocks.reduce((sum, block) => sum + block.dataBytes, 0)
}

async function finish(request: AddModelRequest, name: string, source: Source): Promise<AddedModel> {
  const { dataDir, signal, dtype, contextLength } = request
  if (signal.aborted) throw new CrowdError('aborted', 'nothing was added')
  const storeDir = storeDirectory(dataDir, name)
  const isKept = request.keepSource === true
  const { manifest, config } = await cut(request, name, source).catch(async (thrown: unknown) => {
    await removeUnfinished(dataDir, name)
    if (!isKept) await settleDownload(request, source, isHopeless(thrown))
    throw thrown
  })
  const traits = readTraits(config)
  const known: KnownModel = {
    name,
    origin: source.origin,
    askedDtype: dtype ?? null,
    askedContext: contextLength ?? null,
    addedAt: new Date().toISOString(),
    experts: traits.experts,
    slidingWindow: traits.slidingWindow,
    keptSource: isKept ? source.downloaded : null,
  }
  await writeKnownModel(dataDir, known)
  if (!isKept) await removeUnkept(dataDir, source)
  return { ...known, manifest, storeDir }
}

async function cut(
  request: AddModelRequest,
  name: string,
  { path }: Source,
): Promise<{ readonly manifest: Manifest; readonly config: unknown }> {
  const { config, exported } = await lookAtSource(path, request.dtype)
  if (exported?.choice) request.on?.choice?.(exported.choice)
  const storeDir = storeDirectory(request.dataDir, name)
  return { manifest: await importModel(path, storeDir, importOptions(request, name)), config }
}

/** After a failure: what would fail again is deleted, what may go on is kept. */
async function settleDownload(
  request: AddModelRequest,
  source: Source,
  hopeless: boolean,
): Promise<void> {
  const { downloaded, origin } = source
  if (downloaded === null || origin.kind === 'path') return
  if (hopeless && (await removeUnkept(request.dataDir, source))) {
    request.hub.notice?.('the download was deleted, since cutting it would fail again')
    return
  }
  const hint = `to delete it: crowdinfer model remove ${origin.repo}`
  request.hub.notice?.(`the download is kept in ${downloaded}; ${hint}`)
}

/** @returns whether it was deleted: a model that was added with its source may have the same */
async function removeUnkept(dataDir: string, { downloaded }: Source): Promise<boolean> {
  if (downloaded === null) return false
  const known = await listKnownModels(dataDir)
  if (known.some(({ keptSource }) => keptSource === downloaded)) return false
  await removeDownload(downloaded)
  return true
}

/** The files are what the hub lists: cutting them again would fail again. */
function isHopeless(thrown: unknown): boolean {
  return (
    thrown instanceof CrowdError &&
    (thrown.code === 'model-unsupported' || thrown.code === 'model-invalid')
  )
}

function importOptions({ dtype, contextLength, on }: AddModelRequest, name: string): ImportOptions {
  return {
    // Cast: a model's name is a valid id.
    id: name as ModelId,
    ...(dtype === undefined ? {} : { dtype }),
    ...(contextLength === undefined ? {} : { contextLength }),
    ...(on?.import ? { onProgress: on.import } : {}),
  }
}
