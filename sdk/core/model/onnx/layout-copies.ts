import type { Initializer, TensorData } from '../../graph/graph.ts'
import { elementCount, type TensorType } from '../../tensor/dtype.ts'
import { DATA_LOCATION } from '../graph-builder.ts'

const ALIGNMENT = 64

/** A constant of a model's files and its place in the data of a block. */
export type CopiedWeight = {
  readonly name: string
  readonly type: TensorType
  /** As the block has them. */
  readonly dims: readonly number[]
  readonly source: TensorData
  /**
   * `copied`: byte for byte. `transposed`: [columns, rows] in the file. `widened`: halves become f32.
   * `shifted`: signed bytes become unsigned ones, 128 more.
   */
  readonly form: 'copied' | 'transposed' | 'widened' | 'shifted'
  readonly offset: number
  readonly length: number
}

export type CopiedLayout = {
  /** The given constants, those outside the graph with their places in the block's data. */
  readonly initializers: readonly Initializer[]
  readonly weights: readonly CopiedWeight[]
  readonly bytes: number
  /** The ends of those weights that are part of `table`. */
  readonly cuts: readonly number[]
}

/** What tells that two constants are one tensor of the files. */
export function sourceKey({ name, data }: Initializer): string {
  return data.kind === 'inline' ? name : JSON.stringify(data)
}

/** Shapes and axes stay in the graph, and numbers that take less than their place in the data would. */
const INLINE_MAX_BYTES = 64

export type LayoutOptions = {
  /** Names of constants whose bytes change on the way. */
  readonly forms: ReadonlyMap<string, CopiedWeight['form']>
  /** Constants that two blocks may have, each in pieces of its own. */
  readonly table: readonly Initializer[]
}

/** Lays constants one after another; small ones stay inside the graph, unless they're a table's. */
export function layoutCopies(
  initializers: readonly Initializer[],
  { forms, table }: LayoutOptions,
): CopiedLayout {
  const weights: CopiedWeight[] = []
  const places = new Map<string, CopiedWeight>()
  const cuts: number[] = []
  const tableKeys = new Set(table.map(sourceKey))
  let end = 0

  function place(entry: Initializer): CopiedWeight {
    const { name, type, dims, data: source } = entry
    const form = forms.get(name) ?? 'copied'
    // Exporters give one tensor several names.
    const key = `${sourceKey(entry)} ${form}`
    const known = places.get(key)
    if (known) return known
    const bytes = source.kind === 'inline' ? source.bytes.length : source.length
    const length = form === 'widened' ? 4 * elementCount(dims) : bytes
    const offset = Math.ceil(end / ALIGNMENT) * ALIGNMENT
    const weight = { name, type, dims, source, form, offset, length } as const
    end = offset + length
    places.set(key, weight)
    weights.push(weight)
    return weight
  }

  const placed = initializers.map((entry): Initializer => {
    const isTable = tableKeys.has(sourceKey(entry))
    if (staysInline(entry) && !isTable) return entry
    const { offset, length } = place(entry)
    if (isTable) cuts.push(offset + length)
    const data = { kind: 'external', location: DATA_LOCATION, offset, length } as const
    return { ...entry, data }
  })
  return { initializers: placed, weights, bytes: end, cuts }
}

function staysInline({ type, data }: Initializer): boolean {
  if (data.kind === 'external') return false
  return type === 'i64' || type === 'i32' || data.bytes.length <= INLINE_MAX_BYTES
}
