import { quantizeQ4 } from '../tensor/quantize-q4.ts'
import { quantizeQ8 } from '../tensor/quantize-q8.ts'
import { asBytes } from '../tensor/views.ts'
import type { PlacedWeight } from './layout-weights.ts'
import type { WeightRecipe } from './weight-recipe.ts'

type Form = WeightRecipe['form']
/** Bytes of a run of rows, by the form of the part. */
export type QuantizedParts = ReadonlyMap<Form, Uint8Array<ArrayBuffer>>

/** All parts of a matrix [rows, columns], of which `form` names one; null for forms that aren't quantised. */
export function quantizeParts(
  form: Form,
  floats: Float32Array,
  { rows, columns }: Pick<WeightRecipe, 'rows' | 'columns'>,
): QuantizedParts | null {
  switch (form) {
    case 'q4-packed':
    case 'q4-scales':
    case 'q4-zeros': {
      const { packed, scales, zeros } = quantizeQ4(floats, rows, columns)
      return new Map<Form, Uint8Array<ArrayBuffer>>([
        ['q4-packed', packed],
        ['q4-scales', asBytes(scales)],
        ['q4-zeros', asBytes(zeros)],
      ])
    }
    case 'q8-packed':
    case 'q8-scales': {
      const { packed, scales } = quantizeQ8(floats, rows, columns)
      return new Map<Form, Uint8Array<ArrayBuffer>>([
        ['q8-packed', packed],
        ['q8-scales', asBytes(scales)],
      ])
    }
    case 'rows':
    case 'transposed':
      return null
  }
}

/** A part that is longer is computed again when its turn comes. */
const KEPT_MAX_BYTES = 32 * 1024 ** 2

/** Keeps the other parts of a matrix that was quantised for one of them, until they are asked for. */
export type KeptParts = {
  /** The runs of a part that is there, which are forgotten. */
  readonly take: (recipe: WeightRecipe) => readonly Uint8Array<ArrayBuffer>[] | undefined
  /** Forgets what was kept of this matrix and collects its other parts, run by run. */
  readonly collect: (recipe: WeightRecipe) => (parts: QuantizedParts) => void
}

/** `weights`: those whose data is made. */
export function createKeptParts(weights: readonly PlacedWeight[]): KeptParts {
  const wanted = new Set(
    weights
      .filter(({ length }) => length <= KEPT_MAX_BYTES)
      .map(({ recipe }) => partKey(recipe, recipe.form)),
  )
  const kept = new Map<string, Uint8Array<ArrayBuffer>[]>()
  return {
    take: (recipe) => {
      const key = partKey(recipe, recipe.form)
      const runs = kept.get(key)
      kept.delete(key)
      return runs
    },
    collect: (recipe) => {
      const started = new Set<string>()
      return (parts) => {
        for (const [form, bytes] of parts) {
          const key = partKey(recipe, form)
          if (form === recipe.form || !wanted.has(key)) continue
          const runs = started.has(key) ? (kept.get(key) ?? []) : []
          started.add(key)
          kept.set(key, [...runs, bytes])
        }
      }
    },
  }
}

function partKey(recipe: WeightRecipe, form: Form): string {
  return JSON.stringify({ ...recipe, form, type: null })
}
