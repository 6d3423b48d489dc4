import type { FileHandle } from 'node:fs/promises'
import { gguf } from '@huggingface/gguf'
import { CrowdError } from '../core/errors.ts'
import { placeTensors, type GgufTensor, type TensorInfo } from '../core/gguf/place-tensors.ts'
import { HEADER_MAX_BYTES, scanHeader, type HeaderScan } from '../core/gguf/scan-header.ts'

/** What a GGUF file says of itself. */
export type GgufHeader = {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly tensors: readonly GgufTensor[]
}

/** Most headers are a few MB, the tokens and merges. */
const FIRST_READ_BYTES = 8 << 20

/**
 * Reads and checks the header of an open file.
 * @param file its name, for messages
 * @throws CrowdError model-invalid, model-unsupported (the part is named)
 */
export async function readGgufHeader(handle: FileHandle, file: string): Promise<GgufHeader> {
  const { size } = await handle.stat()
  const scan = await scanFile(handle, size, file)
  const { plain, tensorInfos } = await parse(scan.plain, file)
  const metadata = { ...plain, ...Object.fromEntries(scan.lists) }
  const place = {
    name: file,
    bytes: size,
    headerBytes: scan.bytes,
    alignment: metadata['general.alignment'],
  }
  return { metadata, tensors: placeTensors(tensorInfos, place) }
}

async function scanFile(handle: FileHandle, size: number, file: string): Promise<HeaderScan> {
  const limit = Math.min(size, HEADER_MAX_BYTES)
  for (let length = Math.min(limit, FIRST_READ_BYTES); ; length = Math.min(limit, length * 3)) {
    const bytes = new Uint8Array(length)
    const { bytesRead } = await handle.read(bytes, 0, length, 0)
    if (bytesRead < length) throw new CrowdError('model-invalid', `${file} is cut short.`)
    const scan = scanHeader(bytes, size, file)
    if (scan !== null) return scan
  }
}

type Parsed = {
  readonly plain: Record<string, unknown>
  readonly tensorInfos: readonly TensorInfo[]
}

/** The library reads by HTTP ranges; it's handed those of the bytes that were scanned. */
async function parse(header: Uint8Array<ArrayBuffer>, file: string): Promise<Parsed> {
  const serve: typeof fetch = (_url, init) => {
    const range = new Headers(init?.headers).get('range') ?? ''
    const [, from = '0', to = '0'] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? []
    return Promise.resolve(new Response(header.slice(Number(from), Number(to) + 1)))
  }
  try {
    const { metadata, tensorInfos } = await gguf('http://localhost/', { fetch: serve })
    return { plain: { ...metadata }, tensorInfos }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CrowdError('model-invalid', `${file}: the GGUF header can't be read: ${why}`, {
      cause,
    })
  }
}
