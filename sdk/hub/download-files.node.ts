import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { downloadFile } from './download-file.node.ts'
import type { HubFile, HubListing } from './hub-files.ts'
import type { HubOptions } from './hub-options.ts'

export type FilesProgress = {
  readonly file: string
  readonly doneBytes: number
  readonly totalBytes: number
}

export type DownloadFilesRequest = {
  readonly listing: HubListing
  readonly files: readonly HubFile[]
  /** Files lie in it as they do in the repository. */
  readonly directory: string
  readonly signal: AbortSignal
  readonly onProgress?: (progress: FilesProgress) => void
}

/**
 * Downloads files one after the other, small ones first: what is wrong with a model shows in its settings, before
 * hours of weights. @throws CrowdError as downloadFile
 */
export async function downloadFiles(
  options: HubOptions,
  request: DownloadFilesRequest,
): Promise<void> {
  const { listing, directory, signal } = request
  const files = [...request.files].sort((a, b) => a.bytes - b.bytes)
  const totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let doneBytes = 0
  for (const file of files) {
    const onBytes = (delta: number): void => {
      doneBytes += delta
      request.onProgress?.({ file: file.path, doneBytes, totalBytes })
    }
    const target = join(directory, ...file.path.split('/'))
    await downloadFile(options, { listing, file, target, signal, onBytes })
  }
}

/** Bytes that are still to be fetched; parts of an earlier try count as there. */
export async function missingBytes(files: readonly HubFile[], directory: string): Promise<number> {
  let missing = 0
  for (const { path, bytes } of files) {
    const target = join(directory, ...path.split('/'))
    const held = (await diskBytes(target)) ?? (await diskBytes(`${target}.part`)) ?? 0
    missing += Math.max(0, bytes - held)
  }
  return missing
}

/** What a file really takes: one that is written in ranges may have holes. */
async function diskBytes(path: string): Promise<number | null> {
  const info = await stat(path).catch(() => null)
  return info === null ? null : Math.min(info.size, info.blocks * 512)
}
