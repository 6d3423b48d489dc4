import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { PieceHash } from '../core/ids.ts'
import { PIECE_BYTES } from '../core/limits.ts'
import type { Piece } from '../core/model/manifest.ts'
import { removeLeftovers, writeAtomically } from '../storage/atomic-file.node.ts'

export function sha256Of(bytes: Uint8Array | string): PieceHash {
  // Cast: this is what makes a piece hash.
  return createHash('sha256').update(bytes).digest('hex') as PieceHash
}

export function piecesDirectory(storeDir: string): string {
  return join(storeDir, 'pieces')
}

/** Stores one piece under its hash. A sound copy that is there already is kept. */
export async function writePiece(storeDir: string, bytes: Uint8Array): Promise<Piece> {
  const sha256 = sha256Of(bytes)
  const directory = piecesDirectory(storeDir)
  await mkdir(directory, { recursive: true })
  const present = await readFile(join(directory, sha256)).catch(() => null)
  if (present === null || sha256Of(present) !== sha256) {
    await writeAtomically(directory, sha256, bytes)
  }
  return { sha256, bytes: bytes.length }
}

/**
 * Cuts a stream into pieces of `PIECE_BYTES`; `cuts` are offsets at which a new piece must begin.
 * @returns the pieces in order
 */
export async function writePieces(
  storeDir: string,
  stream: AsyncIterable<Uint8Array>,
  cuts: readonly number[],
): Promise<Piece[]> {
  const pieces: Piece[] = []
  const buffer = new Uint8Array(PIECE_BYTES)
  let filled = 0
  let at = 0
  const flush = async (): Promise<void> => {
    if (filled > 0) pieces.push(await writePiece(storeDir, buffer.subarray(0, filled)))
    filled = 0
  }
  for await (const run of stream) {
    let rest = run
    while (rest.length > 0) {
      const nextCut = cuts.find((cut) => cut > at) ?? Infinity
      const count = Math.min(rest.length, PIECE_BYTES - filled, nextCut - at)
      buffer.set(rest.subarray(0, count), filled)
      filled += count
      at += count
      rest = rest.subarray(count)
      if (filled === PIECE_BYTES || at === nextCut) await flush()
    }
  }
  await flush()
  return pieces
}

/** Deletes pieces of former imports and what a crash left. */
export async function removeOtherPieces(
  storeDir: string,
  keep: ReadonlySet<string>,
): Promise<void> {
  const directory = piecesDirectory(storeDir)
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    if (/^[0-9a-f]{64}$/.test(name) && !keep.has(name)) await rm(path, { force: true })
  }
  await removeLeftovers(directory)
}
