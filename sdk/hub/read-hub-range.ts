import { CrowdError } from '../core/errors.ts'
import type { HubFile, HubListing } from './hub-files.ts'
import type { HubOptions } from './hub-options.ts'
import type { ByteRange, HubAnswer } from './hub-request.ts'
import { createRetry, thrownFailure } from './hub-retry.ts'
import { createRangeReader } from './range-reader.ts'

/** `length` bytes from `position` on. */
export type ReadHubRange = (position: number, length: number) => Promise<Uint8Array<ArrayBuffer>>

/**
 * Reads a few ranges of one file at a pinned commit, with patience for what passes by itself. The bytes are not
 * checked against the file's hash: they are for looking, not for keeping.
 * @throws (by the reader) CrowdError hub-unavailable, hub-denied, download-corrupt, aborted
 */
export function createHubRanges(
  options: HubOptions,
  what: { readonly listing: HubListing; readonly file: HubFile; readonly signal: AbortSignal },
): ReadHubRange {
  const { listing, file, signal } = what
  const reader = createRangeReader(options, listing, file)
  return async (position, length) => {
    const retry = createRetry(options, signal)
    const range = { start: position, end: position + length }
    for (;;) {
      const found = await reader.read(range, signal)
      if (found.kind === 'failed') {
        await retry.after(found.failure)
        continue
      }
      const skipped = found.kind === 'part' ? 0 : position
      try {
        return await take(found.answer, { start: skipped, end: skipped + length }, file)
      } catch (thrown) {
        await retry.after(thrownFailure(thrown))
      }
    }
  }
}

/** What lies between two offsets of an answer's body; the rest of it isn't waited for. */
async function take(
  answer: HubAnswer,
  { start, end }: ByteRange,
  file: HubFile,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(end - start)
  let at = 0
  for await (const chunk of answer.chunks()) {
    const from = Math.max(0, start - at)
    const part = chunk.subarray(from, end - at)
    if (from < chunk.length) bytes.set(part, at + from - start)
    at += chunk.length
    if (at >= end) return bytes
  }
  throw new CrowdError('hub-unavailable', `${file.path}: the answer ended after ${at} bytes`)
}
