import { CrowdError } from '../core/errors.ts'
import type { PieceHash } from '../core/ids.ts'
import type { Manifest } from '../core/model/manifest.ts'

/** The manifest of an imported model. @throws CrowdError model-not-found, model-invalid */
export function readManifest(storeDir: string): Promise<Manifest> {
  throw new CrowdError('internal', storeDir)
}

/** The bytes of a piece, checked against its hash. @throws CrowdError piece-unavailable, piece-corrupt */
export function readPiece(storeDir: string, hash: PieceHash): Promise<Uint8Array<ArrayBuffer>> {
  throw new CrowdError('internal', storeDir + hash)
}

/** Graph and data of one block, as a stage runner's `loadBlock` takes them. */
export function readBlock(
  storeDir: string,
  manifest: Manifest,
  block: number,
): Promise<{ graph: Uint8Array<ArrayBuffer> | null; data: Uint8Array<ArrayBuffer> }> {
  throw new CrowdError('internal', `${storeDir} ${manifest.id} ${block}`)
}
