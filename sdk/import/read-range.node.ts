import type { FileHandle } from 'node:fs/promises'
import { CrowdError } from '../core/errors.ts'

/** `length` bytes from `position` on. @throws CrowdError model-invalid where the file ends before, by its name `file` */
export async function readRange(
  handle: FileHandle,
  position: number,
  length: number,
  file: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled)
    if (bytesRead === 0) throw new CrowdError('model-invalid', `${file} is cut short.`)
    filled += bytesRead
  }
  return bytes
}
