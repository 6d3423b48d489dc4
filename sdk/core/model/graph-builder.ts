import { float, int, type Attribute, type Graph, type GraphNode } from '../graph/graph.ts'
import type { Initializer } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import { Q4_BLOCK, q4Blocks } from '../tensor/quantize-q4.ts'
import { tensorBytes, type TensorType } from '../tensor/dtype.ts'
import { asBytes } from '../tensor/views.ts'
import type { WeightDtype } from './manifest.ts'
import type { WeightRecipe } from './weight-recipe.ts'

export const MICROSOFT = 'com.microsoft'
/** Where the weights of a block lie, as ONNX external data. */
export const DATA_LOCATION = 'data'

/** A matrix of the weights file: [rows, columns] = [outputs, inputs]. */
export type SourceMatrix = {
  readonly source: string
  readonly rows: number
  readonly columns: number
}

export type GraphBuilder = {
  readonly nodes: GraphNode[]
  readonly initializers: Initializer[]
  readonly recipes: Map<string, WeightRecipe>
  /** Adds a node with one output, which it returns. */
  readonly node: (
    op: string,
    name: string,
    inputs: readonly string[],
    options?: { domain?: string; attributes?: Record<string, Attribute>; outputs?: string[] },
  ) => string
  /** A small constant inside the graph. */
  readonly constant: (
    name: string,
    type: TensorType,
    dims: readonly number[],
    values: ArrayBufferView<ArrayBuffer>,
  ) => string
  /** A constant made from the weights file. */
  readonly weight: (name: string, dims: readonly number[], recipe: WeightRecipe) => string
  /** `input` [.., columns] times the matrix = [.., rows]; stored as [columns, rows] or 4-bit blocks. */
  readonly linear: (name: string, input: string, matrix: SourceMatrix) => string
  /** The same, stored in the order of the weights file, so that a tied table has the same bytes. */
  readonly rowLinear: (
    name: string,
    input: string,
    matrix: SourceMatrix & { readonly output: string },
  ) => string
  readonly rmsNorm: (name: string, input: string, weight: string) => string
  /** Sum of residual and skip, and its norm: inputs are [residual, skip, weight]. */
  readonly skipNorm: (name: string, inputs: readonly string[]) => { normed: string; sum: string }
}

export function createGraphBuilder(dtype: WeightDtype, normEpsilon: number): GraphBuilder {
  const nodes: GraphNode[] = []
  const initializers: Initializer[] = []
  const recipes = new Map<string, WeightRecipe>()

  const node: GraphBuilder['node'] = (op, name, inputs, options = {}) => {
    const outputs = options.outputs ?? [`${name}/output_0`]
    const { domain = '', attributes = {} } = options
    nodes.push({ name, op, domain, inputs, outputs, attributes })
    return outputs[0] ?? ''
  }
  const constant: GraphBuilder['constant'] = (name, type, dims, values) => {
    initializers.push({ name, type, dims, data: { kind: 'inline', bytes: asBytes(values) } })
    return name
  }
  const weight: GraphBuilder['weight'] = (name, dims, recipe) => {
    if (recipes.has(name)) return name
    const length = tensorBytes(recipe.type, dims)
    const data = { kind: 'external', location: DATA_LOCATION, offset: 0, length } as const
    initializers.push({ name, type: recipe.type, dims, data })
    recipes.set(name, recipe)
    return name
  }

  const q4Linear = (
    name: string,
    input: string,
    { source, rows, columns, output }: SourceMatrix & { readonly output?: string },
  ): string => {
    const matrix = { source, rows, columns }
    const blocks = q4Blocks(columns)
    const packed = weight(`${name}.weight_Q4`, [rows, blocks, Q4_BLOCK / 2], {
      ...matrix,
      form: 'q4-packed',
      type: 'u8',
    })
    const scales = weight(`${name}.weight_scales`, [rows * blocks], {
      ...matrix,
      form: 'q4-scales',
      type: 'f32',
    })
    const sizes = { K: int(columns), N: int(rows), bits: int(4), block_size: int(Q4_BLOCK) }
    return node('MatMulNBits', name, [input, packed, scales], {
      domain: MICROSOFT,
      attributes: { ...sizes, accuracy_level: int(4) },
      ...(output === undefined ? {} : { outputs: [output] }),
    })
  }
  const linear: GraphBuilder['linear'] = (name, input, matrix) => {
    if (dtype === 'q4') return q4Linear(name, input, matrix)
    const { rows, columns } = matrix
    const recipe = { ...matrix, form: 'transposed', type: dtype } as const
    const stored = weight(`${name}.weight`, [columns, rows], recipe)
    return node('MatMul', name, [input, dtype === 'f16' ? widened(stored) : stored])
  }
  const widened = (stored: string): string =>
    node('Cast', `${stored}/Cast`, [stored], { attributes: { to: int(TYPE_CODES.f32) } })

  const rowLinear: GraphBuilder['rowLinear'] = (name, input, matrix) => {
    if (dtype === 'q4') return q4Linear(name, input, matrix)
    const { source, rows, columns, output } = matrix
    const recipe = { source, rows, columns, form: 'rows', type: dtype } as const
    const stored = weight(source, [rows, columns], recipe)
    return node('FusedMatMul', name, [input, dtype === 'f16' ? widened(stored) : stored], {
      domain: MICROSOFT,
      attributes: { transB: int(1) },
      outputs: [output],
    })
  }

  return {
    nodes,
    initializers,
    recipes,
    node,
    constant,
    weight,
    linear,
    rowLinear,
    rmsNorm: (name, input, scale) =>
      node('SimplifiedLayerNormalization', name, [input, scale], {
        attributes: { axis: int(-1), epsilon: float(normEpsilon), stash_type: int(1) },
      }),
    skipNorm: (name, inputs) => {
      const sum = `${name}/output_3`
      const normed = node('SkipSimplifiedLayerNormalization', name, inputs, {
        domain: MICROSOFT,
        attributes: { epsilon: float(normEpsilon) },
        outputs: [`${name}/output_0`, '', '', sum],
      })
      return { normed, sum }
    },
  }
}

/** The finished graph; inputs and outputs are the caller's. */
export function finishGraph(
  builder: GraphBuilder,
  rest: Pick<Graph, 'name' | 'inputs' | 'outputs'>,
): Graph {
  return { ...rest, nodes: builder.nodes, initializers: builder.initializers }
}
