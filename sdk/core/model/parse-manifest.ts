import { CrowdError } from '../errors.ts'
import type { ModelId, PieceHash } from '../ids.ts'
import { LAYERS_MAX, PIECE_BYTES } from '../limits.ts'
import { isRecord, jsonFields, type JsonFields } from './json-fields.ts'
import {
  type Block,
  type EmbeddingTable,
  type Manifest,
  type Piece,
  type TableDtype,
  type WeightDtype,
} from './manifest.ts'

/** Tokenizer files are fetched in one go; the largest known ones are some 30 MB. */
export const MODEL_FILE_MAX_BYTES = 64 * 1024 * 1024
const FILES_MAX = 16
const PIECES_MAX = 4096
const DTYPES: readonly WeightDtype[] = ['f32', 'f16', 'q8', 'q4']
const TABLE_DTYPES: readonly TableDtype[] = ['f32', 'f16', 'q8']
const KINDS: readonly Block['kind'][] = ['embedding', 'layer', 'head']

const SIZE = { min: 1, max: 1 << 24 }
const BYTES = { min: 0, max: Number.MAX_SAFE_INTEGER }

/**
 * Checks a manifest that came over the network or from disk, field by field and against itself. Unknown
 * fields are dropped. The caller checks `MANIFEST_MAX_BYTES` before parsing JSON.
 * @example const manifest = parseManifest(JSON.parse(text))
 * @throws CrowdError model-invalid (the field is named)
 */
export function parseManifest(json: unknown): Manifest {
  const fields = jsonFields(json, 'manifest.json')
  fields.integer('format', { min: 1, max: 1 })
  const layerCount = fields.integer('layerCount', { min: 1, max: LAYERS_MAX })
  const shape = {
    hiddenSize: fields.integer('hiddenSize', SIZE),
    layerCount,
    headCount: fields.integer('headCount', SIZE),
    kvHeadCount: fields.integer('kvHeadCount', SIZE),
    headSize: fields.integer('headSize', SIZE),
    vocabSize: fields.integer('vocabSize', SIZE),
    contextLength: fields.integer('contextLength', SIZE),
  }
  if (shape.headCount % shape.kvHeadCount !== 0) throw invalid('the key-value heads do not divide')
  const dtype = oneOf(fields, 'dtype', DTYPES)
  return {
    format: 1,
    // Cast: the pattern is what makes a string a model id.
    id: matching(fields, 'id', /^[\w.:-]{1,80}$/) as ModelId,
    revision: matching(fields, 'revision', /^[0-9a-f]{64}$/),
    architecture: matching(fields, 'architecture', /^[\w.-]{1,100}$/),
    dtype,
    ...shape,
    eosTokenIds: parseEos(fields, shape.vocabSize),
    blocks: parseBlocks(fields.array('blocks'), { ...shape, dtype }),
    files: parseFiles(fields.object('files'), fields.value('files')),
  }
}

function invalid(what: string): CrowdError {
  return new CrowdError('model-invalid', `manifest.json: ${what}.`)
}

function matching(fields: JsonFields, field: string, pattern: RegExp): string {
  const value = fields.string(field)
  if (pattern.test(value)) return value
  throw invalid(`"${field}" is malformed`)
}

function oneOf<T extends string>(fields: JsonFields, field: string, values: readonly T[]): T {
  const found = values.find((value) => value === fields.value(field))
  if (found !== undefined) return found
  throw invalid(`"${field}" must be one of ${values.join(', ')}`)
}

function parseEos(fields: JsonFields, vocabSize: number): number[] {
  const ids = fields.array('eosTokenIds')
  const valid = ids.filter((id) => typeof id === 'number' && Number.isInteger(id))
  // Cast: the filter leaves numbers only.
  const numbers = valid as number[]
  if (ids.length > 64 || numbers.length !== ids.length) throw invalid('"eosTokenIds" is malformed')
  if (numbers.some((id) => id < 0 || id >= vocabSize)) {
    throw invalid('"eosTokenIds" holds an id outside the vocabulary')
  }
  return numbers
}

type Shape = Pick<Manifest, 'layerCount' | 'vocabSize' | 'hiddenSize' | 'dtype'>

function parseBlocks(list: readonly unknown[], shape: Shape): Block[] {
  if (list.length !== shape.layerCount + 2) {
    throw invalid(`"blocks" has ${list.length} entries for ${shape.layerCount} layers`)
  }
  return list.map((entry, index) => {
    const fields = jsonFields(entry, `manifest.json: block ${index}`)
    const kind = index === 0 ? 'embedding' : index === list.length - 1 ? 'head' : 'layer'
    if (oneOf(fields, 'kind', KINDS) !== kind) throw invalid(`block ${index} must be the ${kind}`)
    const block = parseBlock(fields, index)
    if ((block.graph === null) !== (kind === 'embedding')) {
      throw invalid(`block ${index} has ${block.graph === null ? 'no' : 'a'} graph`)
    }
    if (kind !== 'embedding') return { kind, ...block }
    return { kind, ...block, table: parseTable(fields.object('table'), block.dataBytes, shape) }
  })
}

function parseBlock(fields: JsonFields, index: number): Omit<Block, 'kind' | 'table'> {
  const graph = fields.value('graph')
  const list = fields.array('data')
  if (list.length === 0 || list.length > PIECES_MAX) throw invalid(`block ${index} has no pieces`)
  const data = list.map((entry) => parsePiece(entry, `block ${index}`, PIECE_BYTES))
  const dataBytes = fields.integer('dataBytes', BYTES)
  if (data.reduce((sum, piece) => sum + piece.bytes, 0) !== dataBytes) {
    throw invalid(`the pieces of block ${index} do not add up to its bytes`)
  }
  return {
    graph: graph === null ? null : parsePiece(graph, `the graph of block ${index}`, PIECE_BYTES),
    data,
    dataBytes,
    f32Bytes: fields.integer('f32Bytes', BYTES),
    ...(fields.value('weightCount') === undefined
      ? {}
      : { weightCount: fields.integer('weightCount', BYTES) }),
  }
}

function parsePiece(entry: unknown, where: string, maxBytes: number): Piece {
  const fields = jsonFields(entry, `manifest.json: a piece of ${where}`)
  return {
    // Cast: the pattern is what makes a string a piece hash.
    sha256: matching(fields, 'sha256', /^[0-9a-f]{64}$/) as PieceHash,
    bytes: fields.integer('bytes', { min: 1, max: maxBytes }),
  }
}

function parseTable(fields: JsonFields, dataBytes: number, shape: Shape): EmbeddingTable {
  const rows = fields.integer('rows', SIZE)
  const columns = fields.integer('columns', SIZE)
  if (rows !== shape.vocabSize || columns !== shape.hiddenSize) {
    throw invalid('the embedding table does not fit the sizes of the model')
  }
  if (fields.value('dtype') === 'packed') {
    return parsePackedTable(fields, dataBytes, { rows, columns })
  }
  const dtype = oneOf(fields, 'dtype', TABLE_DTYPES)
  const offset = fields.integer('offset', BYTES)
  const bits = { f32: 32, f16: 16, q8: 8 }[dtype]
  if (offset + (rows * columns * bits) / 8 > dataBytes) throw invalid('the table exceeds its data')
  if (dtype !== 'q8') return { dtype, rows, columns, offset }
  const scaleOffset = fields.integer('scaleOffset', BYTES)
  if (columns % 32 !== 0 || scaleOffset + rows * (columns / 32) * 4 > dataBytes) {
    throw invalid('the scales of the table exceed its data')
  }
  return { dtype, rows, columns, offset, scaleOffset }
}

function parsePackedTable(
  fields: JsonFields,
  dataBytes: number,
  { rows, columns }: Pick<EmbeddingTable, 'rows' | 'columns'>,
): EmbeddingTable {
  const bits = fields.integer('bits', { min: 4, max: 8 })
  const blockSize = fields.integer('blockSize', { min: 16, max: 1 << 16 })
  if (bits % 4 !== 0 || (columns * bits) % 8 !== 0) throw invalid('"bits" does not fit the table')
  const blocks = Math.ceil(columns / blockSize)
  const place = (field: string, rowBytes: number): number => {
    const offset = fields.integer(field, BYTES)
    if (offset + rows * rowBytes <= dataBytes) return offset
    throw invalid(`"${field}" of the table exceeds its data`)
  }
  return {
    dtype: 'packed',
    rows,
    columns,
    bits,
    blockSize,
    offset: place('offset', (columns * bits) / 8),
    scaleOffset: place('scaleOffset', blocks * 4),
    ...(fields.has('zeroOffset')
      ? { zeroOffset: place('zeroOffset', Math.ceil((blocks * bits) / 8)) }
      : {}),
  }
}

function parseFiles(fields: JsonFields, value: unknown): Record<string, Piece> {
  const names = isRecord(value) ? Object.keys(value) : []
  if (names.length > FILES_MAX) throw invalid(`"files" has ${names.length} entries`)
  const files = names.map((name): [string, Piece] => {
    if (!/^[A-Za-z0-9][\w.-]{0,79}$/.test(name)) throw invalid('"files" holds a malformed name')
    return [name, parsePiece(fields.value(name), name, MODEL_FILE_MAX_BYTES)]
  })
  return Object.fromEntries(files)
}
