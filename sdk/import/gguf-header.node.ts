import type { FileHandle } from 'node:fs/promises'
import { gguf } from '@huggingface/gguf'
import { CrowdError } from '../core/errors.ts'
import { placeTensors, type GgufTensor, type TensorInfo } from '../core/gguf/place-tensors.ts'
import { HEADER_MAX_BYTES, scanHeader, type HeaderScan } from '../core/gguf/scan-header.ts'
import { readRange } from './read-range.node.ts'

/** What a GGUF file says of itself. */
export type GgufHeader = {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly tensors: readonly GgufTensor[]
}

/** Most headers are a few MB, the tokens and merges. */
const FIRST_READ_BYTES = 8 << 20

/** One file of a GGUF model, wherever it lies. */
export type GgufPart = {
  /** Its name, for messages. */
  readonly file: string
  readonly bytes: number
  /** `length` bytes from `position` on. */
  readonly read: (position: number, length: number) => Promise<Uint8Array<ArrayBuffer>>
}

/** An open file of this machine. */
export async function openPart(handle: FileHandle, file: string): Promise<GgufPart> {
  const { size } = await handle.stat()
  return {
    file,
    bytes: size,
    read: (position, length) => readRange(handle, position, length, file),
  }
}

/**
 * Reads and checks the header of a file.
 * @throws CrowdError model-invalid, model-unsupported (the part is named), and what `read` throws
 */
export async function readGgufHeader(part: GgufPart): Promise<GgufHeader> {
  const { file, bytes } = part
  const scan = await scanFile(part)
  const { plain, tensorInfos } = await parse(scan.plain, file)
  const metadata = { ...plain, ...Object.fromEntries(scan.lists) }
  const place = {
    name: file,
    bytes,
    headerBytes: scan.bytes,
    alignment: metadata['general.alignment'],
  }
  return { metadata, tensors: placeTensors(tensorInfos, place) }
}

async function scanFile({ file, bytes, read }: GgufPart): Promise<HeaderScan> {
  const limit = Math.min(bytes, HEADER_MAX_BYTES)
  for (let length = Math.min(limit, FIRST_READ_BYTES); ; length = Math.min(limit, length * 3)) {
    const scan = scanHeader(await read(0, length), bytes, file)
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
