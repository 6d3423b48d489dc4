import { CrowdError } from '../errors.ts'
import { bytesPerElement, describeShape } from '../tensor/dtype.ts'
import { isRecord } from './json-fields.ts'
import type { SourceTensor } from './tensor-source.ts'

/** The first 8 bytes of a file: the length of the header that follows. */
export const SAFETENSORS_PREFIX_BYTES = 8
/** The format's own limit on the header. */
const HEADER_MAX_BYTES = 100 * 1024 * 1024

const TYPES: Readonly<Record<string, SourceTensor['type']>> = {
  F32: 'f32',
  F16: 'f16',
  BF16: 'bf16',
}

/** A tensor and where its bytes lie in the file. */
export type PlacedTensor = SourceTensor & { readonly offset: number; readonly length: number }

/**
 * The header's length in bytes, from the first 8 bytes of a file.
 * @throws CrowdError model-invalid
 */
export function safetensorsHeaderBytes(
  prefix: Uint8Array,
  fileBytes: number,
  file: string,
): number {
  if (prefix.length < SAFETENSORS_PREFIX_BYTES) {
    throw new CrowdError('model-invalid', `${file} is too short to be a safetensors file.`)
  }
  const view = new DataView(prefix.buffer, prefix.byteOffset, SAFETENSORS_PREFIX_BYTES)
  const length = Number(view.getBigUint64(0, true))
  if (length < 2 || length > HEADER_MAX_BYTES || length + SAFETENSORS_PREFIX_BYTES > fileBytes) {
    throw new CrowdError(
      'model-invalid',
      `${file} is not a safetensors file or is cut short: its header would be ${length} bytes long.`,
    )
  }
  return length
}

/**
 * Parses a header: every tensor's type, shape and range are checked against each other and the file.
 * Types that no weight of ours can have (integers and the like) are left out; asking for one finds nothing.
 * @param fileBytes size of the whole file
 * @throws CrowdError model-invalid (the tensor is named)
 */
export function parseSafetensors(
  header: Uint8Array,
  fileBytes: number,
  file: string,
): Map<string, PlacedTensor> {
  const json = parseHeader(header, file)
  const dataStart = SAFETENSORS_PREFIX_BYTES + header.length
  const tensors = new Map<string, PlacedTensor>()
  const ranges: { name: string; from: number; to: number }[] = []
  for (const [name, entry] of Object.entries(json)) {
    if (name === '__metadata__') continue
    const { type, dims, from, to } = parseEntry(entry, { name, file })
    if (to > fileBytes - dataStart) {
      throw new CrowdError(
        'model-invalid',
        `${file}: the tensor ${name} ends ${to - (fileBytes - dataStart)} bytes after the file.`,
      )
    }
    ranges.push({ name, from, to })
    if (type === undefined) continue
    const want = dims.reduce((product, dim) => product * dim, bytesPerElement(type))
    if (to - from !== want) {
      throw new CrowdError(
        'model-invalid',
        `${file}: the tensor ${name} ${describeShape(dims)} has ${to - from} bytes, not ${want}.`,
      )
    }
    tensors.set(name, { name, type, dims, offset: dataStart + from, length: want })
  }
  checkOverlaps(ranges, file)
  return tensors
}

function parseHeader(header: Uint8Array, file: string): Record<string, unknown> {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(header))
  } catch (cause) {
    throw new CrowdError('model-invalid', `${file}: the header is not JSON.`, { cause })
  }
  if (isRecord(json)) return json
  throw new CrowdError('model-invalid', `${file}: the header is not a JSON object.`)
}

type Entry = {
  readonly type: SourceTensor['type'] | undefined
  readonly dims: readonly number[]
  readonly from: number
  readonly to: number
}

function parseEntry(entry: unknown, where: { name: string; file: string }): Entry {
  const { name, file } = where
  const dtype = isRecord(entry) ? entry['dtype'] : undefined
  const dims = isRecord(entry) ? entry['shape'] : undefined
  const offsets = isRecord(entry) ? entry['data_offsets'] : undefined
  if (typeof dtype !== 'string' || !isCounts(dims) || !isCounts(offsets) || offsets.length !== 2) {
    throw new CrowdError('model-invalid', `${file}: the tensor ${name} has a malformed entry.`)
  }
  const [from = 0, to = 0] = offsets
  if (from > to) {
    throw new CrowdError('model-invalid', `${file}: the tensor ${name} ends before it begins.`)
  }
  return { type: Object.hasOwn(TYPES, dtype) ? TYPES[dtype] : undefined, dims, from, to }
}

function isCounts(value: unknown): value is number[] {
  return (
    Array.isArray(value) &&
    value.every((item) => typeof item === 'number' && Number.isSafeInteger(item) && item >= 0)
  )
}

function checkOverlaps(ranges: { name: string; from: number; to: number }[], file: string): void {
  const sorted = ranges.filter(({ from, to }) => to > from).sort((a, b) => a.from - b.from)
  sorted.forEach((range, i) => {
    const before = sorted[i - 1]
    if (before && before.to > range.from) {
      throw new CrowdError(
        'model-invalid',
        `${file}: the tensors ${before.name} and ${range.name} overlap.`,
      )
    }
  })
}
