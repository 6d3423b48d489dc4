import type { RopeParams } from './rope.ts'

/**
 * A decoder-only transformer, described part by part: what each family's config.json comes to, and all that
 * the graph builder knows. Tensor names are those of the weights file.
 */
export type Decoder = {
  readonly architecture: string
  readonly hiddenSize: number
  readonly headCount: number
  readonly kvHeadCount: number
  readonly headSize: number
  readonly vocabSize: number
  /** Tokens, prompt and answer together. */
  readonly contextLength: number
  readonly eosTokenIds: readonly number[]
  readonly embedding: EmbeddingSpec
  readonly layers: readonly LayerSpec[]
  readonly finalNorm: Norm
  readonly head: HeadSpec
}

/** Outputs of a fused matrix: `run` of them at a time, the first at `first`, then `stride` further on. */
export type RowPick = {
  readonly first: number
  readonly run: number
  readonly stride: number
  /** Outputs of the whole fused matrix. */
  readonly of: number
}

/** A tensor of the weights file as [rows, columns] = [outputs, inputs]. */
export type Matrix = {
  readonly source: string
  readonly rows: number
  readonly columns: number
  /** `columns` where the file holds it the other way round, as GPT-2 does. */
  readonly stored: 'rows' | 'columns'
  readonly pick: RowPick | null
}

export type Vector = {
  readonly source: string
  readonly size: number
  readonly pick: RowPick | null
  /** Added to every value: Gemma's norms store their distance from 1. */
  readonly plus: number
}

export type Projection = { readonly matrix: Matrix; readonly bias: Vector | null }

/** `rms`: Zhang and Sennrich 2019; `layer`: Ba, Kiros and Hinton 2016. */
export type Norm = {
  readonly kind: 'rms' | 'layer'
  readonly weight: Vector
  readonly bias: Vector | null
  readonly epsilon: number
}

export type EmbeddingSpec = {
  readonly source: string
  /** What the rows are multiplied by. */
  readonly scale: number
  /** Learned positions, added to the rows; position p is row p + `offset`. */
  readonly positions: {
    readonly source: string
    readonly rows: number
    readonly offset: number
  } | null
  readonly norm: Norm | null
}

export type Activation = 'silu' | 'gelu' | 'gelu-tanh' | 'relu'

/** What tells a query how far away a key is. */
export type PositionScheme =
  { readonly kind: 'rope'; readonly rope: RopeParams } | AlibiScheme | { readonly kind: 'none' }

/** A linear bias per head (Press, Smith and Lewis 2021), times `scale`. */
export type AlibiScheme = {
  readonly kind: 'alibi'
  readonly scale: number
  /** Slopes, positions and their products are rounded to bfloat16, as in the code that trained Falcon. */
  readonly rounded: boolean
}

export type AttentionSpec = {
  readonly query: Projection
  readonly key: Projection
  readonly value: Projection
  readonly output: Projection
  /** Of queries and keys before rotation, each head by itself or all heads at once. */
  readonly headNorms: {
    readonly query: Norm
    readonly key: Norm
    readonly scope: 'head' | 'all'
  } | null
  readonly scale: number
  /** Scores are squeezed into ±softcap by tanh; 0 = not. */
  readonly softcap: number
  /** Tokens that a query sees, itself included; 0 = all. */
  readonly window: number
  readonly positions: PositionScheme
}

export type GatedSpec = {
  readonly gate: Projection
  readonly up: Projection
  readonly down: Projection
  readonly activation: Activation
}

export type FeedForwardSpec =
  | ({ readonly kind: 'gated' } & GatedSpec)
  | {
      readonly kind: 'plain'
      readonly up: Projection
      readonly down: Projection
      readonly activation: Activation
    }
  /** Each token goes through the `top` experts that the router's softmax puts first. */
  | {
      readonly kind: 'experts'
      readonly router: Projection
      readonly experts: readonly GatedSpec[]
      readonly top: number
      /** Whether the chosen weights are scaled to sum to 1. */
      readonly normalise: boolean
    }

export type LayerSpec = {
  readonly attentionNorm: Norm
  readonly attention: AttentionSpec
  /** On what attention adds to the stream. */
  readonly attentionPostNorm: Norm | null
  readonly feedForward: FeedForwardSpec
  readonly feedForwardPostNorm: Norm | null
} & (
  | {
      /** The second half reads the stream after attention was added. */
      readonly order: 'sequential'
      readonly feedForwardNorm: Norm
    }
  | {
      /** Both halves read the same stream; without a norm of its own the second reads what the first does. */
      readonly order: 'parallel'
      readonly feedForwardNorm: Norm | null
    }
)

export type HeadSpec = {
  readonly source: string
  readonly bias: Vector | null
  /** Logits are squeezed into ±softcap by tanh; 0 = not. */
  readonly softcap: number
  /** The table of the embedding is the head's matrix. */
  readonly tied: boolean
}

export function matrix(source: string, rows: number, columns: number): Matrix {
  return { source, rows, columns, stored: 'rows', pick: null }
}

export function vector(source: string, size: number): Vector {
  return { source, size, pick: null, plus: 0 }
}

/** `name.weight` [rows, columns], with `name.bias` where there is one. */
export function projection(
  name: string,
  rows: number,
  columns: number,
  options: { readonly bias?: boolean } = {},
): Projection {
  return {
    matrix: matrix(`${name}.weight`, rows, columns),
    bias: options.bias === true ? vector(`${name}.bias`, rows) : null,
  }
}

/** Some outputs of a fused projection. */
export function picked(fused: Projection, pick: Omit<RowPick, 'of'>, rows: number): Projection {
  const choice = { ...pick, of: fused.matrix.rows }
  return {
    matrix: { ...fused.matrix, rows, pick: choice },
    bias: fused.bias && { ...fused.bias, size: rows, pick: choice },
  }
}

/** Outputs [first, first + rows) of a fused projection. */
export function slice(fused: Projection, first: number, rows: number): Projection {
  return picked(fused, { first, run: rows, stride: rows }, rows)
}
