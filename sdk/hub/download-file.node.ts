import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CrowdError } from '../core/errors.ts'
import { storageError } from '../storage/time-limit.ts'
import { openJournal } from './download-journal.node.ts'
import { downloadPieces } from './download-pieces.node.ts'
import { hashFile } from './hash-file.node.ts'
import type { HubFile, HubListing } from './hub-files.ts'
import type { HubOptions } from './hub-options.ts'
import { createPieceBoard } from './piece-board.ts'
import { createRangeReader } from './range-reader.ts'
import { stoppedError } from './stopped-error.ts'

export type DownloadFileRequest = {
  readonly listing: HubListing
  readonly file: HubFile
  /** Absolute. Until the file is whole and checked, its bytes lie beside it, in `<target>.part`. */
  readonly target: string
  readonly signal: AbortSignal
  /** Bytes that are there more than before; negative when they proved wrong and start anew. */
  readonly onBytes: (deltaBytes: number) => void
  /** Bytes of a request; default 16 MiB: a hub counts requests. */
  readonly pieceBytes?: number
  /** Requests at once. */
  readonly parallel?: number
}

const PIECE_BYTES = 16 * 1024 * 1024
const PARALLEL = 4

/**
 * Downloads one file, or what is missing of it, and puts it in place once its hash is right. Wrong bytes are
 * fetched once more. A file that is in place was checked before.
 * @throws CrowdError download-corrupt, hub-unavailable, hub-denied, model-not-found, storage-full, storage-failed, aborted
 */
export async function downloadFile(
  options: HubOptions,
  request: DownloadFileRequest,
): Promise<void> {
  const { file, target, onBytes } = request
  const present = await stat(target).catch(() => null)
  if (present?.isFile() === true && present.size === file.bytes) {
    onBytes(file.bytes)
    return
  }
  const part = `${target}.part`
  try {
    await mkdir(dirname(target), { recursive: true })
    await fillPart(options, request, part)
    await rename(part, target)
  } catch (thrown) {
    throw storageError(thrown, `downloading ${file.path}`)
  }
}

async function fillPart(
  options: HubOptions,
  request: DownloadFileRequest,
  part: string,
): Promise<void> {
  const { file, signal, listing, pieceBytes = PIECE_BYTES, parallel = PARALLEL } = request
  const journal = await openJournal(`${part}.journal`, file, pieceBytes)
  const handle = await openPart(part)
  const board = createPieceBoard(file.bytes, pieceBytes, request.onBytes)
  let isSettled = false
  try {
    const { size } = await handle.stat()
    for (const piece of journal.done) {
      const { start, end } = board.rangeOf(piece)
      // The journal may be there without its file.
      if (end <= size) board.reached(piece, end - start)
    }
    // Once for what was missing, once more for wrong bytes.
    for (let round = 0; round < 2; round++) {
      const reader = createRangeReader(options, listing, file)
      await downloadPieces({ options, file, reader, handle, board, journal, parallel, signal })
      isSettled = await isSound(handle, part, request)
      if (isSettled) return
      await journal.restart()
      board.clear()
    }
    isSettled = true
  } finally {
    await handle.close()
    await journal.close()
    if (isSettled) await journal.remove()
  }
  await rm(part, { force: true })
  const message = `${file.path} does not have the hash that the hub lists (twice)`
  throw new CrowdError('download-corrupt', message)
}

async function openPart(path: string): Promise<FileHandle> {
  // Not truncated: it may hold what an earlier try brought.
  return await open(path, 'r+').catch(() => open(path, 'w+'))
}

async function isSound(
  handle: FileHandle,
  part: string,
  { file, signal }: DownloadFileRequest,
): Promise<boolean> {
  await handle.truncate(file.bytes)
  await handle.sync()
  try {
    const { kind, hex } = file.hash
    return (await hashFile(part, { kind, bytes: file.bytes }, signal)) === hex
  } catch (thrown) {
    if (signal.aborted) throw stoppedError()
    throw thrown
  }
}
