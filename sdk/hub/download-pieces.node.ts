import type { FileHandle } from 'node:fs/promises'
import { CrowdError } from '../core/errors.ts'
import { storageError } from '../storage/time-limit.ts'
import type { DownloadJournal } from './download-journal.node.ts'
import type { HubFile } from './hub-files.ts'
import type { HubOptions } from './hub-options.ts'
import type { HubAnswer } from './hub-request.ts'
import { createRetry, thrownFailure } from './hub-retry.ts'
import type { PieceBoard } from './piece-board.ts'
import type { RangeReader } from './range-reader.ts'
import { stoppedError } from './stopped-error.ts'

export type PieceJob = {
  readonly options: HubOptions
  readonly file: HubFile
  readonly reader: RangeReader
  readonly handle: FileHandle
  readonly board: PieceBoard
  readonly journal: DownloadJournal
  readonly parallel: number
  readonly signal: AbortSignal
}

/** A try that brought this much is progress, and failures are counted anew. */
const PROGRESS_BYTES = 1024 * 1024

/**
 * Brings every missing piece of a file to its place on the disk. Bytes are written as they come: what is in memory
 * is what the sockets hold, however large file and pieces are. A try that breaks off goes on where it stopped.
 * @throws CrowdError hub-unavailable, hub-denied, model-not-found, download-corrupt, storage-full, storage-failed, aborted
 */
export async function downloadPieces(job: PieceJob): Promise<void> {
  const { board } = job
  // One failure stops the others.
  const stop = new AbortController()
  const signal = AbortSignal.any([job.signal, stop.signal])
  const whole = createWholeStream({ ...job, signal })
  const queue = Array.from({ length: board.count }, (_, piece) => piece).values()
  async function work(): Promise<void> {
    for (const piece of queue) await bringPiece({ ...job, signal }, whole, piece)
  }
  const workers = Array.from({ length: job.parallel }, work)
  try {
    await Promise.all(workers)
  } catch (thrown) {
    stop.abort()
    // Nobody may write to the file once this has ended.
    await Promise.allSettled(workers)
    throw job.signal.aborted ? stoppedError() : thrown
  }
}

async function bringPiece(job: PieceJob, whole: WholeStream, piece: number): Promise<void> {
  const { board, reader, signal } = job
  const retry = createRetry(job.options, signal)
  const range = board.rangeOf(piece)
  while (!board.isDone(piece)) {
    const before = board.gotOf(piece)
    const found = await reader.read({ start: range.start + before, end: range.end }, signal)
    if (found.kind === 'failed') {
      await retry.after(found.failure)
      continue
    }
    try {
      if (found.kind === 'part') await takePart(job, found.answer, piece)
      else await whole.take(found.answer)
    } catch (thrown) {
      if (board.gotOf(piece) - before >= PROGRESS_BYTES) retry.succeeded()
      await retry.after(thrownFailure(thrown))
    }
  }
}

async function takePart(job: PieceJob, answer: HubAnswer, piece: number): Promise<void> {
  const { board, journal, file } = job
  const { start, end } = board.rangeOf(piece)
  for await (const chunk of answer.chunks()) {
    const at = start + board.gotOf(piece)
    if (at + chunk.length > end) throw wrongLength(file, 'more bytes than were asked for')
    await write(job, chunk, at)
    board.reached(piece, at + chunk.length - start)
  }
  if (!board.isDone(piece)) throw wrongLength(file, 'fewer bytes than were asked for')
  await note(journal, piece)
}

type WholeStream = { take(answer: HubAnswer): Promise<void> }

/**
 * For servers that do no ranges: one stream from the start of the file fills all pieces; the others wait for it.
 * Bytes of pieces that are there already are passed over.
 */
function createWholeStream(job: PieceJob): WholeStream {
  const { board, journal, file } = job
  let running: Promise<void> | null = null

  async function takeAll(answer: HubAnswer): Promise<void> {
    let at = 0
    for await (const chunk of answer.chunks()) {
      if (at + chunk.length > file.bytes) throw wrongLength(file, 'more bytes than it has')
      for (let from = 0; from < chunk.length;) {
        const piece = pieceAt(board, at + from)
        const { start, end } = board.rangeOf(piece)
        const count = Math.min(chunk.length - from, end - at - from)
        if (!board.isDone(piece)) {
          await write(job, chunk.subarray(from, from + count), at + from)
          board.reached(piece, at + from + count - start)
          if (board.isDone(piece)) await note(journal, piece)
        }
        from += count
      }
      at += chunk.length
    }
    if (at < file.bytes) throw wrongLength(file, 'fewer bytes than it has')
  }

  return {
    async take(answer) {
      if (running !== null) {
        await answer.cancel()
        // Whoever reads it has the error.
        await running.catch(() => undefined)
        return
      }
      running = takeAll(answer)
      try {
        await running
      } finally {
        running = null
      }
    },
  }
}

function pieceAt(board: PieceBoard, offset: number): number {
  return Math.floor(offset / board.rangeOf(0).end)
}

async function write(job: PieceJob, bytes: Uint8Array, position: number): Promise<void> {
  try {
    let written = 0
    while (written < bytes.length) {
      const left = bytes.length - written
      const result = await job.handle.write(bytes, written, left, position + written)
      written += result.bytesWritten
    }
  } catch (thrown) {
    throw storageError(thrown, `writing ${job.file.path}`)
  }
}

async function note(journal: DownloadJournal, piece: number): Promise<void> {
  try {
    await journal.add(piece)
  } catch (thrown) {
    throw storageError(thrown, 'noting what was downloaded')
  }
}

function wrongLength(file: HubFile, what: string): CrowdError {
  return new CrowdError('download-corrupt', `${file.path}: the hub sent ${what}`)
}
