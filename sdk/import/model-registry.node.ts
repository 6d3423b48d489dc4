import { randomUUID } from 'node:crypto'
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { blockPieces, type Manifest, type Piece } from '../core/model/manifest.ts'
import { writeAtomically } from '../storage/atomic-file.node.ts'
import { formatKnownModel, isModelName, parseKnownModel, type KnownModel } from './known-model.ts'
import { MANIFEST_FILE, readManifest } from './model-store.node.ts'
import { piecesDirectory } from './piece-writer.node.ts'
import { parseJson } from './safetensors-source.node.ts'

/** A model that was added: its entry, and the blocks that were made of it. */
export type AddedModel = KnownModel & { readonly storeDir: string; readonly manifest: Manifest }

const ENTRY_FILE = 'model.json'
/** No model's name begins so. */
const REMOVED_PREFIX = '.removed-'

export function modelsDirectory(dataDir: string): string {
  return join(dataDir, 'models')
}

export function storeDirectory(dataDir: string, name: string): string {
  return join(modelsDirectory(dataDir), name)
}

/** The entry of an added model; null where none has that name. @throws CrowdError model-invalid */
export async function findKnownModel(dataDir: string, name: string): Promise<KnownModel | null> {
  if (!isModelName(name)) return null
  const path = join(storeDirectory(dataDir, name), ENTRY_FILE)
  const text = await readFile(path, 'utf8').catch(() => null)
  return text === null ? null : parseKnownModel(parseJson(text, path), name)
}

/** Every added model's entry, by name. @throws CrowdError model-invalid */
export async function listKnownModels(dataDir: string): Promise<KnownModel[]> {
  const names = await readdir(modelsDirectory(dataDir)).catch(() => [])
  const found = await Promise.all(names.sort().map((name) => findKnownModel(dataDir, name)))
  return found.filter((known) => known !== null)
}

/** Makes a store's model known; the last step of adding. */
export async function writeKnownModel(dataDir: string, known: KnownModel): Promise<void> {
  await writeAtomically(storeDirectory(dataDir, known.name), ENTRY_FILE, formatKnownModel(known))
}

/**
 * An added model, ready to be served: every piece is there in its length.
 * @throws CrowdError model-invalid, which says how to repair it
 */
export async function openKnownModel(dataDir: string, known: KnownModel): Promise<AddedModel> {
  const storeDir = storeDirectory(dataDir, known.name)
  const manifest = await readManifest(storeDir).catch((cause: unknown) => {
    throw new CrowdError('model-invalid', `${storeDir}/manifest.json is damaged: ${REPAIR}`, {
      cause,
    })
  })
  for (const { sha256, bytes } of manifestPieces(manifest)) {
    const info = await stat(join(piecesDirectory(storeDir), sha256)).catch(() => null)
    if (info?.size === bytes) continue
    const message = `The model ${known.name} has lost pieces: ${REPAIR}`
    throw new CrowdError('model-invalid', message)
  }
  return { ...known, storeDir, manifest }
}

export const REPAIR = 'remove it and add it again.'

/** Every piece of a model once. */
export function manifestPieces(manifest: Manifest): Piece[] {
  const all = [...manifest.blocks.flatMap(blockPieces), ...Object.values(manifest.files)]
  return [...new Map(all.map((piece) => [piece.sha256, piece])).values()]
}

/** Bytes on the disk. */
export function storedBytes(manifest: Manifest): number {
  return manifestPieces(manifest).reduce((sum, { bytes }) => sum + bytes, 0)
}

/** Frees the disk of a store that was never finished; any other stays. */
export async function removeUnfinished(dataDir: string, name: string): Promise<void> {
  const info = await stat(join(storeDirectory(dataDir, name), MANIFEST_FILE)).catch(() => null)
  if (info === null) await rm(storeDirectory(dataDir, name), { recursive: true, force: true })
}

/** Forgets a model and frees its disk; at once for others, whatever happens meanwhile. */
export async function removeStore(dataDir: string, name: string): Promise<void> {
  const parent = modelsDirectory(dataDir)
  await rename(storeDirectory(dataDir, name), join(parent, `${REMOVED_PREFIX}${randomUUID()}`))
  for (const entry of await readdir(parent)) {
    // Also what an earlier removal left when it was killed.
    if (entry.startsWith(REMOVED_PREFIX)) await rm(join(parent, entry), { recursive: true })
  }
}
