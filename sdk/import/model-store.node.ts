import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import { MANIFEST_MAX_BYTES } from '../core/limits.ts'
import type { Manifest } from '../core/model/manifest.ts'
import { parseManifest } from '../core/model/parse-manifest.ts'
import { piecesDirectory, sha256Of } from './piece-writer.node.ts'
import { parseJson } from './safetensors-source.node.ts'

export const MANIFEST_FILE = 'manifest.json'

/** The manifest of an imported model. @throws CrowdError model-not-found, model-invalid */
export async function readManifest(storeDir: string): Promise<Manifest> {
  const path = join(storeDir, MANIFEST_FILE)
  const info = await stat(path).catch(() => null)
  if (!info?.isFile()) throw new CrowdError('model-not-found', `There is no ${path}.`)
  if (info.size > MANIFEST_MAX_BYTES) {
    throw new CrowdError('model-invalid', `${path} is larger than ${MANIFEST_MAX_BYTES} bytes.`)
  }
  return parseManifest(parseJson(await readFile(path, 'utf8'), MANIFEST_FILE))
}

/** The bytes of a piece, checked against its hash. @throws CrowdError piece-unavailable, piece-corrupt */
export async function readPiece(
  storeDir: string,
  hash: PieceHash,
): Promise<Uint8Array<ArrayBuffer>> {
  if (!/^[0-9a-f]{64}$/.test(hash)) {
    throw new CrowdError('piece-unavailable', 'A piece is named by 64 hex digits.')
  }
  const path = join(piecesDirectory(storeDir), hash)
  const buffer = await readFile(path).catch((cause: unknown) => {
    throw new CrowdError('piece-unavailable', `There is no ${path}.`, { cause })
  })
  if (sha256Of(buffer) !== hash) throw new CrowdError('piece-corrupt', `${path} is damaged.`)
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length)
}

/** Graph and data of one block, as a stage runner's `loadBlock` takes them; the buffers are the caller's. */
export async function readBlock(
  storeDir: string,
  manifest: Manifest,
  block: number,
): Promise<{ graph: Uint8Array<ArrayBuffer> | null; data: Uint8Array<ArrayBuffer> }> {
  const entry = manifest.blocks[block]
  if (!entry) {
    throw new CrowdError('bad-request', `${manifest.id} has no block ${block}.`)
  }
  const data = new Uint8Array(entry.dataBytes)
  let at = 0
  for (const piece of entry.data) {
    data.set(await readPiece(storeDir, piece.sha256), at)
    at += piece.bytes
  }
  // Copied: a small file read by Node lies in a pool that can't be given away.
  const graph = entry.graph && new Uint8Array(await readPiece(storeDir, entry.graph.sha256))
  return { graph, data }
}
