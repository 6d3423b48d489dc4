import type { GgufTensor } from './place-tensors.ts'

/** A tensor under its Hugging Face name: which rows of which GGUF tensor it is, and what was done to them. */
export type TensorView = {
  readonly name: string
  readonly tensor: GgufTensor
  /** As Hugging Face has it. */
  readonly dims: readonly number[]
  /** First row in the GGUF tensor: experts are stacked. */
  readonly firstRow: number
  /** Row (or, of a vector, element) of the GGUF tensor, counted from `firstRow`, for a row of this one; absent: the same. */
  readonly sourceRow?: ((row: number) => number) | undefined
  /** The GGUF tensor has rows and columns exchanged; matrices only. */
  readonly transposed: boolean
  /** Added to each value. */
  readonly add: number
}

/** How the converter changed a tensor, to be undone. */
export type Change =
  | { readonly kind: 'none' }
  | { readonly kind: 'transposed' }
  /** Gemma's norms multiply by 1 + weight; the file holds the sum. */
  | { readonly kind: 'plus-one' }
  | { readonly kind: 'rows'; readonly sourceRow: (row: number) => number }

/** The whole of a tensor, with its change undone. */
export function viewTensor(name: string, tensor: GgufTensor, change: Change): TensorView {
  const transposed = change.kind === 'transposed' && tensor.dims.length === 2
  return {
    name,
    tensor,
    dims: transposed ? tensor.dims.toReversed() : tensor.dims,
    firstRow: 0,
    sourceRow: change.kind === 'rows' ? change.sourceRow : undefined,
    transposed,
    add: change.kind === 'plus-one' ? -1 : 0,
  }
}

/** One expert's matrix of a stack [experts, rows, columns]. */
export function viewExpert(name: string, tensor: GgufTensor, expert: number): TensorView {
  const [, rows = 0, columns = 0] = tensor.dims
  return {
    name,
    tensor,
    dims: [rows, columns],
    firstRow: expert * rows,
    transposed: false,
    add: 0,
  }
}

/**
 * Rotary pairs: the file has the two halves of each head interleaved, (2i, 2i + 1); Hugging Face's layout
 * rotates (i, i + d/2).
 */
export function interleavedHeads(headSize: number): (row: number) => number {
  const half = headSize / 2
  return (row) => {
    const within = row % headSize
    return row - within + 2 * (within % half) + Math.floor(within / half)
  }
}

/**
 * Fused query, key and value: Hugging Face has, for each group, its queries, one key and one value; the file
 * has all queries, then all keys, then all values.
 */
export function groupedHeads(
  groups: number,
  queriesPerGroup: number,
  headSize: number,
): (row: number) => number {
  return (row) => {
    const head = Math.floor(row / headSize)
    const group = Math.floor(head / (queriesPerGroup + 2))
    const slot = head % (queriesPerGroup + 2)
    const queries = groups * queriesPerGroup
    const source =
      slot < queriesPerGroup
        ? group * queriesPerGroup + slot
        : queries + (slot - queriesPerGroup) * groups + group
    return source * headSize + (row % headSize)
  }
}
