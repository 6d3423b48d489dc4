import { CrowdError } from '../errors.ts'
import { bytesPerElement, describeShape, elementCount } from '../tensor/dtype.ts'
import { bfloatsToFloats, floatsToHalves, halvesToFloats } from '../tensor/float16.ts'
import { asBytes, asFloats, asHalves } from '../tensor/views.ts'
import type { PlacedWeight } from './layout-weights.ts'
import {
  createKeptParts,
  quantizeParts,
  type KeptParts,
  type QuantizedParts,
} from './quantized-parts.ts'
import { readRows } from './read-rows.ts'
import type { SourceTensor, TensorSource } from './tensor-source.ts'
import type { WeightRecipe } from './weight-recipe.ts'

/** Rows are converted in runs of about this many elements, so that a large table is never held twice. */
const RUN_ELEMENTS = 1 << 20

/**
 * The bytes of a block's data in order, zeros between tensors included, run by run.
 * @throws CrowdError model-invalid, model-unsupported (the tensor is named)
 */
export async function* blockData(
  weights: readonly PlacedWeight[],
  source: TensorSource,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const kept = createKeptParts(weights)
  let at = 0
  for (const { recipe, offset, length } of weights) {
    if (offset > at) yield new Uint8Array(offset - at)
    at = offset
    for await (const bytes of kept.take(recipe) ?? weightData(recipe, source, kept)) {
      at += bytes.length
      yield bytes
    }
    if (at !== offset + length) {
      throw new CrowdError('internal', `The tensor ${recipe.source} took ${at - offset} bytes.`)
    }
  }
}

/** Checks that a tensor is there with the shape that the graph expects, before anything is read. */
export function checkSource(recipe: WeightRecipe, source: TensorSource): SourceTensor {
  const tensor = source.find(recipe.source)
  if (!tensor) {
    throw new CrowdError('model-invalid', `The weights lack the tensor ${recipe.source}.`)
  }
  const want = sourceDims(recipe)
  const isVector = recipe.columns === 1 && tensor.dims.length === 1
  if (describeShape(tensor.dims) !== describeShape(isVector ? want.slice(0, 1) : want)) {
    throw new CrowdError(
      'model-invalid',
      `The tensor ${recipe.source} is ${describeShape(tensor.dims)}; config.json asks for ${describeShape(recipe.columns === 1 ? want.slice(0, 1) : want)}.`,
    )
  }
  return tensor
}

/** As the file holds it, the unwanted rows of a fused matrix included. */
function sourceDims({ rows, columns, pick, stored }: WeightRecipe): number[] {
  const all = pick?.of ?? rows
  return stored === 'rows' ? [all, columns] : [columns, all]
}

async function* weightData(
  recipe: WeightRecipe,
  source: TensorSource,
  kept: KeptParts,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const tensor = checkSource(recipe, source)
  const { rows, columns } = recipe
  const needsAll = recipe.form === 'transposed' || recipe.stored === 'columns'
  const run = needsAll ? rows : Math.max(1, Math.floor(RUN_ELEMENTS / columns))
  const keep = kept.collect(recipe)
  for (let row = 0; row < rows; row += run) {
    const count = Math.min(run, rows - row)
    const bytes = await readRows(recipe, source, { tensor, row, count })
    yield convert(bytes, tensor, { recipe: { ...recipe, rows: count }, keep })
  }
}

function convert(
  bytes: Uint8Array<ArrayBuffer>,
  tensor: SourceTensor,
  {
    recipe,
    keep,
  }: { readonly recipe: WeightRecipe; readonly keep: (parts: QuantizedParts) => void },
): Uint8Array<ArrayBuffer> {
  const { rows, columns, form, type, plus } = recipe
  if (bytes.length !== elementCount([rows, columns]) * bytesPerElement(tensor.type)) {
    throw new CrowdError('model-invalid', `The tensor ${tensor.name} is cut short.`)
  }
  if (tensor.type === 'f16' && type === 'f16' && plus === 0) {
    const halves = asHalves(bytes)
    checkFiniteHalves(halves, tensor)
    return asBytes(form === 'transposed' ? transpose(halves, rows, columns) : halves)
  }
  const read = toFloats(bytes, tensor)
  checkFinite(read, tensor)
  const floats = plus === 0 ? read : read.map((value) => value + plus)
  const quantized = quantizeParts(form, floats, recipe)
  const wanted = quantized?.get(form)
  if (quantized && wanted) {
    keep(quantized)
    return wanted
  }
  const ordered = form === 'transposed' ? transpose(floats, rows, columns) : floats
  return asBytes(type === 'f32' ? ordered : toHalves(ordered, tensor))
}

function toFloats(bytes: Uint8Array<ArrayBuffer>, tensor: SourceTensor): Float32Array<ArrayBuffer> {
  if (tensor.type === 'f32') return asFloats(bytes)
  const halves = asHalves(bytes)
  return tensor.type === 'f16' ? halvesToFloats(halves) : bfloatsToFloats(halves)
}

function toHalves(floats: Float32Array, tensor: SourceTensor): Uint16Array<ArrayBuffer> {
  const halves = floatsToHalves(floats)
  if (halves.some((half) => (half & 0x7c00) === 0x7c00)) {
    throw new CrowdError(
      'model-unsupported',
      `The tensor ${tensor.name} has values too large for f16, in which this model would be served.`,
    )
  }
  return halves
}

function checkFinite(floats: Float32Array, tensor: SourceTensor): void {
  // A loop: a callback for each of a billion values takes as long as all the rest.
  for (const value of floats) if (value - value !== 0) throw notFinite(tensor)
}

/** All bits of the exponent are set in what is infinite or no number. */
function checkFiniteHalves(halves: Uint16Array, tensor: SourceTensor): void {
  for (const half of halves) if ((half & 0x7c00) === 0x7c00) throw notFinite(tensor)
}

function notFinite(tensor: SourceTensor): CrowdError {
  return new CrowdError(
    'model-invalid',
    `The tensor ${tensor.name} has values that are not finite.`,
  )
}

/** [rows, columns] → [columns, rows]. */
function transpose<T extends Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>>(
  values: T,
  rows: number,
  columns: number,
): T {
  const out = values.slice()
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      out[column * rows + row] = values[row * columns + column] ?? 0
    }
  }
  // Cast: `slice` of a union loses which member it was.
  return out as T
}
