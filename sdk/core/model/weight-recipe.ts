/**
 * How a constant of our graphs is made from a tensor of the weights file, [rows, columns] there (a vector
 * has one row).
 * `rows`: the same order. `transposed`: [columns, rows]. `q4-packed` and `q4-scales`: the two halves of a
 * matrix quantised in blocks of 32 columns, see quantize-q4.ts.
 */
export type WeightRecipe = {
  readonly source: string
  readonly rows: number
  readonly columns: number
  readonly form: 'rows' | 'transposed' | 'q4-packed' | 'q4-scales'
  /** Element type of the result; `u8` for `q4-packed`. */
  readonly type: 'f32' | 'f16' | 'u8'
}

/** Initializer name → how it's made. */
export type WeightRecipes = ReadonlyMap<string, WeightRecipe>
