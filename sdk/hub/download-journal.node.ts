import { open, readFile, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { writeAtomically } from '../storage/atomic-file.node.ts'
import type { HubFile } from './hub-files.ts'

/** Which pieces of a file are on the disk; survives a killed process. */
export type DownloadJournal = {
  readonly done: ReadonlySet<number>
  /** Notes that the bytes of a piece were written. */
  add(piece: number): Promise<void>
  /** Forgets every piece: the bytes proved wrong. */
  restart(): Promise<void>
  close(): Promise<void>
  /** After `close`. */
  remove(): Promise<void>
}

/**
 * Opens the journal of a download. What was noted for another file, or for other pieces, is forgotten.
 * One line names the file, then one line for each piece; a line that a crash cut short does not count.
 */
export async function openJournal(
  path: string,
  file: HubFile,
  pieceBytes: number,
): Promise<DownloadJournal> {
  const head = JSON.stringify({ bytes: file.bytes, hash: file.hash.hex, pieceBytes })
  const text = await readFile(path, 'utf8').catch(() => '')
  const done = new Set(readPieces(text, head, Math.ceil(file.bytes / pieceBytes)))
  const lines = [head, ...[...done].map((piece) => String(piece))]
  // Written anew, so that a cut-off line doesn't run into the next one.
  await writeAtomically(dirname(path), basename(path), `${lines.join('\n')}\n`)
  const handle = await open(path, 'a')
  return {
    done,
    async add(piece) {
      done.add(piece)
      await handle.write(`${piece}\n`)
    },
    async restart() {
      done.clear()
      await handle.truncate(0)
      await handle.write(`${head}\n`)
    },
    close: () => handle.close(),
    remove: () => rm(path, { force: true }),
  }
}

function readPieces(text: string, head: string, count: number): number[] {
  const [first, ...lines] = text.split('\n')
  if (first !== head) return []
  // What follows the last line break is empty, or cut short.
  return lines
    .slice(0, -1)
    .filter((line) => /^\d{1,9}$/.test(line))
    .map(Number)
    .filter((piece) => piece < count)
}
