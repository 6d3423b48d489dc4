import { CrowdError } from '../errors.ts'

/**
 * A GGUF header with its lists taken out. The parser library gets what is left: it would spend seconds on the
 * tokens of a large vocabulary, and drops the byte order mark that some of them begin with. Every count and
 * length is checked against the file first, since the library believes them.
 * Format: ggml's `docs/gguf.md`, versions 2 and 3.
 */
export type HeaderScan = {
  /** Bytes up to the end of the tensor descriptions; data begins at the next aligned offset. */
  readonly bytes: number
  /** Values of the metadata entries that are lists. */
  readonly lists: ReadonlyMap<string, readonly ListValue[]>
  /** The header with all lists empty, for the library. */
  readonly plain: Uint8Array<ArrayBuffer>
}

export type ListValue = string | number | boolean

/** Tokens, scores and merges of the largest known models are 15 MB. */
export const HEADER_MAX_BYTES = 48 << 20
/**
 * The library reads 2 MB at once, and what crosses into the next part it may cut short. Without the lists
 * 10,000 tensors and several chat templates fit.
 */
const PLAIN_MAX_BYTES = 1_400_000
/** Of all lists together. The largest vocabularies have 262,144 tokens, with as many scores and types. */
const ELEMENTS_MAX = 2_000_000
const STRING_MAX_BYTES = 1 << 20
const KEY_MAX_BYTES = 1 << 16
const NAME_MAX_BYTES = 256
const DIMENSIONS_MAX = 4

const STRING = 8
const LIST = 9
/**
 * Scans the header in the first bytes of a file.
 * @returns null where the header goes on after `bytes` and the file does too
 * @throws CrowdError model-invalid, model-unsupported (the part is named)
 */
export function scanHeader(bytes: Uint8Array, fileBytes: number, file: string): HeaderScan | null {
  try {
    return scan(createReader(bytes, fileBytes, file))
  } catch (error) {
    if (!(error instanceof EndOfBytes)) throw error
    if (bytes.length < Math.min(fileBytes, HEADER_MAX_BYTES)) return null
    const why =
      bytes.length < fileBytes ? `is longer than ${HEADER_MAX_BYTES} bytes` : 'is cut short'
    throw new CrowdError('model-invalid', `${file}: the GGUF header ${why}, within ${error.part}.`)
  }
}

/** Not a failure: the caller may have more bytes. */
class EndOfBytes extends Error {
  readonly part: string

  constructor(part: string) {
    super(part)
    this.part = part
  }
}

type Reader = {
  /** What is being read, for messages. */
  part: string
  at: number
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly fail: (what: string) => CrowdError
  /** Moves on by `count` bytes; the offset of the first. */
  readonly take: (count: number) => number
  readonly u32: () => number
  /** Infinity where the number is beyond exact integers. */
  readonly u64: () => number
  readonly text: (maxBytes: number) => string
  /** Fails where `count` things of at least `each` bytes can't be in the file. */
  readonly checkCount: (count: number, each: number, what: string) => void
}

function createReader(bytes: Uint8Array, fileBytes: number, file: string): Reader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const take = (count: number): number => {
    const from = reader.at
    if (from + count > bytes.length) throw new EndOfBytes(reader.part)
    reader.at += count
    return from
  }
  const u64 = (): number => exactUint(view, take(8))
  const reader: Reader = {
    part: 'the first bytes',
    at: 0,
    bytes,
    view,
    fail: (what) => new CrowdError('model-invalid', `${file}: ${reader.part} ${what}.`),
    take,
    u32: () => view.getUint32(take(4), true),
    u64,
    text: (maxBytes) => {
      const length = u64()
      if (length > maxBytes) throw reader.fail(`has a text of ${length} bytes, too many`)
      const from = take(length)
      return decoder.decode(bytes.subarray(from, from + length))
    },
    checkCount: (count, each, what) => {
      if (count * each > fileBytes - reader.at) {
        throw reader.fail(`counts ${count} ${what}, for which the file is too short`)
      }
    },
  }
  return reader
}

function exactUint(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true)
  return high > 0x1fffff ? Infinity : high * 0x100000000 + view.getUint32(at, true)
}

/** Readers of the plain types, by their number; 8 and 9 are texts and lists. */
const PLAIN: readonly (
  | { readonly bytes: number; readonly read: (view: DataView, at: number) => number | boolean }
  | undefined
)[] = [
  { bytes: 1, read: (view, at) => view.getUint8(at) },
  { bytes: 1, read: (view, at) => view.getInt8(at) },
  { bytes: 2, read: (view, at) => view.getUint16(at, true) },
  { bytes: 2, read: (view, at) => view.getInt16(at, true) },
  { bytes: 4, read: (view, at) => view.getUint32(at, true) },
  { bytes: 4, read: (view, at) => view.getInt32(at, true) },
  { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  { bytes: 1, read: (view, at) => view.getUint8(at) !== 0 },
  undefined,
  undefined,
  { bytes: 8, read: exactUint },
  { bytes: 8, read: (view, at) => Number(view.getBigInt64(at, true)) },
  { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
]

type Lists = {
  readonly values: Map<string, readonly ListValue[]>
  /** Where the values of a list lie; their count is the 8 bytes before. */
  readonly ranges: { readonly from: number; readonly to: number }[]
  elements: number
}

function scan(reader: Reader): HeaderScan {
  checkVersion(reader)
  reader.part = 'the header'
  const tensorCount = reader.u64()
  reader.checkCount(tensorCount, 32, 'tensors')
  const entryCount = reader.u64()
  reader.checkCount(entryCount, 13, 'metadata entries')
  const lists: Lists = { values: new Map(), ranges: [], elements: 0 }
  scanEntries(reader, entryCount, lists)
  scanTensors(reader, tensorCount)
  const plain = withoutLists(reader, lists)
  if (plain.length > PLAIN_MAX_BYTES) {
    reader.part = 'the header'
    throw reader.fail(`has ${plain.length} bytes besides its lists, too many`)
  }
  return { bytes: reader.at, lists: lists.values, plain }
}

/** The header's bytes with the values of all lists left out and their counts zero. */
function withoutLists({ bytes, at }: Reader, { ranges }: Lists): Uint8Array<ArrayBuffer> {
  const cut = ranges.reduce((sum, { from, to }) => sum + to - from, 0)
  const plain = new Uint8Array(at - cut)
  let done = 0
  let filled = 0
  for (const { from, to } of [...ranges, { from: at, to: at }]) {
    plain.set(bytes.subarray(done, from), filled)
    filled += from - done
    if (from < at) plain.fill(0, filled - 8, filled)
    done = to
  }
  return plain
}

function checkVersion(reader: Reader): void {
  if (reader.u32() !== 0x46554747) throw reader.fail('are not those of a GGUF file')
  const version = reader.u32()
  if (version === 2 || version === 3) return
  const isBigEndian = (version & 0xffff) === 0
  const what = isBigEndian ? 'big endian' : `version ${version}`
  throw new CrowdError(
    version === 1 || (isBigEndian && version !== 0) ? 'model-unsupported' : 'model-invalid',
    reader.fail(`say ${what}; GGUF is read in versions 2 and 3, little endian`).message,
  )
}

function scanEntries(reader: Reader, count: number, lists: Lists): void {
  const keys = new Set<string>()
  for (let i = 0; i < count; i++) {
    reader.part = `metadata entry ${i}`
    const key = reader.text(KEY_MAX_BYTES)
    // The library keeps entries as properties of an object.
    if (key === '' || key === '__proto__') throw reader.fail(`has the key ${JSON.stringify(key)}`)
    reader.part = `the metadata entry ${JSON.stringify(key.slice(0, 80))}`
    if (keys.has(key)) throw reader.fail('is there twice')
    keys.add(key)
    const type = reader.u32()
    if (type === STRING) reader.take(textBytes(reader))
    else if (type === LIST) lists.values.set(key, scanList(reader, lists))
    else reader.take(plainType(reader, type).bytes)
  }
}

function textBytes(reader: Reader): number {
  const length = reader.u64()
  if (length <= STRING_MAX_BYTES) return length
  throw reader.fail(`has a text of ${length} bytes, too many`)
}

function plainType(reader: Reader, type: number): NonNullable<(typeof PLAIN)[number]> {
  const plain = PLAIN[type]
  if (plain === undefined) throw reader.fail(`has values of the type ${type}, which is none`)
  return plain
}

function scanList(reader: Reader, lists: Lists): ListValue[] {
  const type = reader.u32()
  if (type === LIST) throw reader.fail('has lists in a list')
  const plain = type === STRING ? null : plainType(reader, type)
  const count = reader.u64()
  lists.elements += count
  if (lists.elements > ELEMENTS_MAX) throw reader.fail(`has ${count} values, too many`)
  reader.checkCount(count, plain?.bytes ?? 8, 'values')
  const from = reader.at
  const values: ListValue[] = []
  if (plain === null) {
    for (let i = 0; i < count; i++) values.push(reader.text(STRING_MAX_BYTES))
  } else {
    reader.take(count * plain.bytes)
    for (let at = from; at < reader.at; at += plain.bytes) values.push(plain.read(reader.view, at))
  }
  lists.ranges.push({ from, to: reader.at })
  return values
}

function scanTensors(reader: Reader, count: number): void {
  const names = new Set<string>()
  for (let i = 0; i < count; i++) {
    reader.part = `tensor ${i}`
    const name = reader.text(NAME_MAX_BYTES)
    reader.part = `the tensor ${JSON.stringify(name)}`
    if (name === '') throw reader.fail('has no name')
    if (names.has(name)) throw reader.fail('is there twice')
    names.add(name)
    const dimensions = reader.u32()
    if (dimensions < 1 || dimensions > DIMENSIONS_MAX) {
      throw reader.fail(`has ${dimensions} dimensions; 1 to ${DIMENSIONS_MAX} are allowed`)
    }
    reader.take(dimensions * 8 + 4 + 8)
  }
}
