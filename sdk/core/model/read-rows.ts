import { CrowdError } from '../errors.ts'
import { bytesPerElement } from '../tensor/dtype.ts'
import { asBytes, asFloats, asHalves } from '../tensor/views.ts'
import type { SourceTensor, TensorSource } from './tensor-source.ts'
import type { WeightRecipe } from './weight-recipe.ts'

/** Rows [row, row + count) of a recipe's matrix, as stored elements. */
type Rows = { readonly tensor: SourceTensor; readonly row: number; readonly count: number }

/**
 * Reads rows of the matrix that a recipe means, out of whatever holds it: a fused matrix is read run by run, a
 * matrix that is stored by columns is read whole and turned. @throws CrowdError model-invalid
 */
export async function readRows(
  recipe: WeightRecipe,
  source: TensorSource,
  rows: Rows,
): Promise<Uint8Array<ArrayBuffer>> {
  return recipe.stored === 'columns'
    ? readTurned(recipe, source, rows)
    : readRuns(recipe, source, rows)
}

async function readRuns(
  recipe: WeightRecipe,
  source: TensorSource,
  { tensor, row, count }: Rows,
): Promise<Uint8Array<ArrayBuffer>> {
  const rowBytes = recipe.columns * bytesPerElement(tensor.type)
  const runs = runsOf(recipe, row, count)
  const [only] = runs
  if (only && runs.length === 1) {
    return source.read(recipe.source, only.from * rowBytes, only.count * rowBytes)
  }
  const out = new Uint8Array(count * rowBytes)
  let at = 0
  for (const run of runs) {
    const bytes = await source.read(recipe.source, run.from * rowBytes, run.count * rowBytes)
    out.set(bytes, at)
    at += bytes.length
  }
  if (at === out.length) return out
  throw new CrowdError('model-invalid', `The tensor ${tensor.name} is cut short.`)
}

type Run = { readonly from: number; readonly count: number }

/** The contiguous rows of the file that hold the wanted ones. */
function runsOf({ pick }: WeightRecipe, row: number, count: number): Run[] {
  if (pick === null) return [{ from: row, count }]
  const runs: Run[] = []
  let at = row
  while (at < row + count) {
    const inside = at % pick.run
    const length = Math.min(pick.run - inside, row + count - at)
    runs.push({
      from: pick.first + Math.floor(at / pick.run) * pick.stride + inside,
      count: length,
    })
    at += length
  }
  return runs
}

async function readTurned(
  recipe: WeightRecipe,
  source: TensorSource,
  { tensor, row, count }: Rows,
): Promise<Uint8Array<ArrayBuffer>> {
  const size = bytesPerElement(tensor.type)
  const { columns } = recipe
  const all = recipe.pick?.of ?? recipe.rows
  const bytes = await source.read(recipe.source, 0, all * columns * size)
  if (bytes.length !== all * columns * size) {
    throw new CrowdError('model-invalid', `The tensor ${tensor.name} is cut short.`)
  }
  const stored = size === 4 ? asFloats(bytes) : asHalves(bytes)
  const turned = stored.slice(0, count * columns)
  let to = 0
  for (const run of runsOf(recipe, row, count)) {
    for (let from = run.from; from < run.from + run.count; from++) {
      for (let column = 0; column < columns; column++) {
        turned[to++] = stored[column * all + from] ?? 0
      }
    }
  }
  return asBytes(turned)
}
