import type { ModelId, PieceHash } from '../ids.ts'

/** A content-addressed run of bytes, at most `PIECE_BYTES` long; the only thing that is ever downloaded. */
export type Piece = { readonly sha256: PieceHash; readonly bytes: number }

/**
 * `q4`, `q8`: blocks of 32 columns with an f32 scale each, in `q4` an f32 zero point too; a `q4` model has its table and
 * head in q8.
 */
export type WeightDtype = 'f32' | 'f16' | 'q8' | 'q4'

export type TableDtype = Exclude<WeightDtype, 'q4'>

/** What the embedding's table and the head are kept in: 4 bits would cost there nearly as much as in all layers. */
export function tableDtype(dtype: WeightDtype): TableDtype {
  return dtype === 'q4' ? 'q8' : dtype
}

export function isQuantized(dtype: WeightDtype): dtype is 'q4' | 'q8' {
  return dtype === 'q4' || dtype === 'q8'
}

/**
 * Where the embedding table lies in its block's data, row by row.
 * `f32`/`f16`: [rows, columns]. `q8`: [rows, columns] bytes at `offset`, zero point 128, and f32 scales
 * [rows, columns/32] at `scaleOffset`.
 * `packed`, as exporters write it: unsigned values of `bits` (4: low nibble first), f32 scales [rows, blocks]
 * for blocks of `blockSize` columns, and zero points at `zeroOffset`, packed like a row of values; without
 * them 2^(bits-1).
 */
export type EmbeddingTable = {
  readonly dtype: TableDtype | 'packed'
  readonly rows: number
  readonly columns: number
  readonly offset: number
  readonly scaleOffset?: number
  readonly bits?: number
  readonly blockSize?: number
  readonly zeroOffset?: number
}

/**
 * One block of a model. Its data file is the concatenation of `data`; the graph is a small ONNX model in
 * the canonical dialect whose weights are external at location `data`.
 * Graph inputs of a layer: `hidden` f32 [1, S, H], `past.key`, `past.value` f32 [1, KV, P, D],
 * `seqlens_k` i32 [1], `total_sequence_length` i32 []. Outputs: `hidden_out`, `present.key`, `present.value`.
 * Graph of the head: `hidden` f32 [1, S, H] -> `logits` f32 [1, S, V].
 * The embedding has no graph: its rows are read in TypeScript.
 */
export type Block = {
  readonly kind: 'embedding' | 'layer' | 'head'
  readonly graph: Piece | null
  readonly data: readonly Piece[]
  /** Sum of `data`, bytes. */
  readonly dataBytes: number
  /** Bytes of the weights once expanded to f32, which is what WASM holds. */
  readonly f32Bytes: number
  /** Absent: f32Bytes / 4. Said where weights are stored in bytes that no provider expands, so that f32Bytes counts bytes. */
  readonly weightCount?: number
  readonly table?: EmbeddingTable
}

/** Plain static data: a directory that any file server can serve. Pieces lie beside it under their hash. */
export type Manifest = {
  readonly format: 1
  readonly id: ModelId
  /** SHA-256 over everything that decides the output: block pieces and the sizes below. */
  readonly revision: string
  readonly architecture: string
  readonly dtype: WeightDtype
  readonly hiddenSize: number
  readonly layerCount: number
  readonly headCount: number
  readonly kvHeadCount: number
  readonly headSize: number
  readonly vocabSize: number
  /** Tokens, prompt and answer together. */
  readonly contextLength: number
  readonly eosTokenIds: readonly number[]
  /** Index = block number: embedding, layers 1..L, head. */
  readonly blocks: readonly Block[]
  /** Tokenizer and settings files by name, e.g. `tokenizer.json`. */
  readonly files: Readonly<Record<string, Piece>>
}

/** f32 keys and values of one layer for one token, bytes. */
export function kvBytesPerToken(manifest: Pick<Manifest, 'kvHeadCount' | 'headSize'>): number {
  return 2 * manifest.kvHeadCount * manifest.headSize * 4
}

/** Pieces of a block in the order they're fetched: graph first, then data. Equal pieces are listed once. */
export function blockPieces(block: Block): Piece[] {
  const all = block.graph === null ? [...block.data] : [block.graph, ...block.data]
  return [...new Map(all.map((piece) => [piece.sha256, piece])).values()]
}
