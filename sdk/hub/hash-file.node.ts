import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { FileHash } from './hub-files.ts'

const CHUNK_BYTES = 1024 * 1024

/** The hash of a file in hex, read as a stream. @throws as the file system, and when aborted */
export async function hashFile(
  path: string,
  hash: { readonly kind: FileHash['kind']; readonly bytes: number },
  signal: AbortSignal,
): Promise<string> {
  const digest = createHash(hash.kind === 'sha256' ? 'sha256' : 'sha1')
  // Git hashes a file with its kind and length before it.
  if (hash.kind === 'git-blob') digest.update(`blob ${hash.bytes}\0`)
  const stream = createReadStream(path, { highWaterMark: CHUNK_BYTES, signal })
  // A stream without an encoding gives buffers.
  for await (const chunk of stream as AsyncIterable<Buffer>) digest.update(chunk)
  return digest.digest('hex')
}
