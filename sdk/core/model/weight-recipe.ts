import type { Matrix } from '../decoder/decoder.ts'

/**
 * How a constant of our graphs is made from a tensor of the weights file: a matrix of [rows, columns], or a
 * vector, which has one column.
 * `rows`: in that order. `transposed`: [columns, rows]. `q4-packed`, `q4-scales`, `q4-zeros`, and for 8 bits the first
 * two: the parts of a matrix quantised in blocks of 32 columns, see quantize-q4.ts and quantize-q8.ts.
 */
export type WeightRecipe = Matrix & {
  /** Added to every value. */
  readonly plus: number
  readonly form:
    'rows' | 'transposed' | 'q4-packed' | 'q4-scales' | 'q4-zeros' | 'q8-packed' | 'q8-scales'
  /** Element type of the result; `u8` for what is packed. */
  readonly type: 'f32' | 'f16' | 'u8'
}

/** Initializer name → how it's made. */
export type WeightRecipes = ReadonlyMap<string, WeightRecipe>
