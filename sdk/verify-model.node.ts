import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from './core/errors.ts'
import type { Manifest, Piece } from './core/model/manifest.ts'
import { readManifest } from './import/model-store.node.ts'
import { findKnownModel, manifestPieces, storeDirectory } from './import/model-registry.node.ts'
import { piecesDirectory } from './import/piece-writer.node.ts'
import { builtinModels } from './import/resolve-model.node.ts'
import { builtinDirectory } from './import/stored-model.node.ts'

export type DamagedPiece = {
  readonly sha256: string
  readonly problem: 'missing' | 'wrong length' | 'wrong bytes'
  /** What it belongs to: `layer 3`, `tokenizer.json`. */
  readonly parts: readonly string[]
}

export type Verified = {
  readonly pieces: number
  readonly bytes: number
  readonly damaged: readonly DamagedPiece[]
}

/**
 * Reads every piece of a stored model again and compares its hash.
 * @throws CrowdError model-not-found, model-invalid where the manifest itself is damaged, aborted
 */
export async function verifyModel(
  dataDir: string,
  name: string,
  options: {
    readonly signal: AbortSignal
    readonly onProgress?: (doneBytes: number, totalBytes: number) => void
  },
): Promise<Verified> {
  const storeDir = storeDirectory(dataDir, name)
  const manifest = await readManifest(storeDir).catch(async (thrown: unknown) => {
    throw (await neverStored(dataDir, name, thrown)) ?? thrown
  })
  const pieces = manifestPieces(manifest)
  const totalBytes = pieces.reduce((sum, { bytes }) => sum + bytes, 0)
  const damaged: DamagedPiece[] = []
  let doneBytes = 0
  for (const piece of pieces) {
    if (options.signal.aborted) throw new CrowdError('aborted', 'the check was stopped')
    const problem = await problemOf(join(piecesDirectory(storeDir), piece.sha256), piece)
    if (problem !== null) {
      damaged.push({ sha256: piece.sha256, problem, parts: partsOf(manifest, piece) })
    }
    doneBytes += piece.bytes
    options.onProgress?.(doneBytes, totalBytes)
  }
  return { pieces: pieces.length, bytes: totalBytes, damaged }
}

/** Why there is no manifest; null where there should be one. */
async function neverStored(
  dataDir: string,
  name: string,
  thrown: unknown,
): Promise<CrowdError | null> {
  const isMissing = thrown instanceof CrowdError && thrown.code === 'model-not-found'
  if (!isMissing || (await findKnownModel(dataDir, name)) !== null) return null
  const isBuiltin = (await builtinModels(builtinDirectory())).includes(name)
  const why = isBuiltin
    ? `${name} is built in, and nothing of it is stored yet: that happens when it is first served.`
    : `No model ${name} was added: crowdinfer model list shows those that were.`
  return new CrowdError('model-not-found', why)
}

async function problemOf(path: string, piece: Piece): Promise<DamagedPiece['problem'] | null> {
  const info = await stat(path).catch(() => null)
  if (info === null) return 'missing'
  if (info.size !== piece.bytes) return 'wrong length'
  const hash = createHash('sha256')
  try {
    // A stream without an encoding gives buffers.
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  } catch {
    // A disk that can't be read is as bad as wrong bytes on it.
    return 'wrong bytes'
  }
  return hash.digest('hex') === piece.sha256 ? null : 'wrong bytes'
}

function partsOf(manifest: Manifest, { sha256 }: Piece): string[] {
  const last = manifest.blocks.length - 1
  const blocks = manifest.blocks.flatMap((block, index) => {
    const has = block.graph?.sha256 === sha256 || block.data.some((one) => one.sha256 === sha256)
    if (!has) return []
    return [index === 0 ? 'embedding' : index === last ? 'head' : `layer ${index}`]
  })
  const files = Object.entries(manifest.files).flatMap(([file, one]) =>
    one.sha256 === sha256 ? [file] : [],
  )
  return [...blocks, ...files]
}
