import type { Matrix, Norm, Projection, Vector } from '../decoder/decoder.ts'
import { float, int, type Attribute, type Graph, type GraphNode } from '../graph/graph.ts'
import type { Initializer } from '../graph/graph.ts'
import { TYPE_CODES } from '../graph/onnx-format.ts'
import { Q4_BLOCK, q4Blocks } from '../tensor/quantize-q4.ts'
import { tensorBytes, type TensorType } from '../tensor/dtype.ts'
import { asBytes } from '../tensor/views.ts'
import { isQuantized, tableDtype, type WeightDtype } from './manifest.ts'
import type { WeightRecipe } from './weight-recipe.ts'

export const MICROSOFT = 'com.microsoft'
/** Where the weights of a block lie, as ONNX external data. */
export const DATA_LOCATION = 'data'

/** ONNX Runtime's accuracy_level; 0 computes in the type of the activations. */
export const INT8_ACTIVATIONS = 4

export type GraphBuilder = {
  readonly dtype: WeightDtype
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
  /** A small constant inside the graph; the same name is the same constant. */
  readonly constant: (
    name: string,
    type: TensorType,
    dims: readonly number[],
    values: ArrayBufferView<ArrayBuffer>,
  ) => string
  /** A constant made from the weights file. */
  readonly weight: (name: string, dims: readonly number[], recipe: WeightRecipe) => string
  /** f32 [size]. */
  readonly vector: (vector: Vector) => string
  /** `input` [.., columns] times the matrix, plus the bias = [.., rows]; stored as [columns, rows] or in blocks. */
  readonly linear: (name: string, input: string, projection: Projection) => string
  /** The same, stored in the order of the weights file, so that a tied table has the same bytes. */
  readonly rowLinear: (name: string, input: string, matrix: Matrix, output: string) => string
  readonly norm: (name: string, input: string, norm: Norm) => string
  /** Sum of residual and skip, and its norm. */
  readonly skipNorm: (
    name: string,
    stream: { readonly residual: string; readonly skip: string },
    norm: Norm,
  ) => { normed: string; sum: string }
}

export function createGraphBuilder(dtype: WeightDtype): GraphBuilder {
  const nodes: GraphNode[] = []
  const initializers: Initializer[] = []
  const recipes = new Map<string, WeightRecipe>()
  const constants = new Set<string>()

  const node: GraphBuilder['node'] = (op, name, inputs, options = {}) => {
    const outputs = options.outputs ?? [`${name}/output_0`]
    const { domain = '', attributes = {} } = options
    nodes.push({ name, op, domain, inputs, outputs, attributes })
    return outputs[0] ?? ''
  }
  const constant: GraphBuilder['constant'] = (name, type, dims, values) => {
    if (constants.has(name)) return name
    constants.add(name)
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
  const vector: GraphBuilder['vector'] = ({ source, size, pick, plus }) => {
    const name = pick === null ? source : `${source}[${pick.first}]`
    const recipe = { source, rows: size, columns: 1, stored: 'rows', pick, plus } as const
    return weight(name, [size], { ...recipe, form: 'rows', type: 'f32' })
  }
  const widened = (stored: string): string =>
    node('Cast', `${stored}/Cast`, [stored], { attributes: { to: int(TYPE_CODES.f32) } })

  const blockLinear = (
    name: string,
    input: string,
    matrix: Matrix,
    { bits, output }: { readonly bits: 4 | 8; readonly output?: string },
  ): string => {
    const { rows, columns } = matrix
    const blocks = q4Blocks(columns)
    const packed = weight(`${name}.weight_Q${bits}`, [rows, blocks, (Q4_BLOCK * bits) / 8], {
      ...matrix,
      plus: 0,
      form: `q${bits}-packed`,
      type: 'u8',
    })
    const scales = weight(`${name}.weight_scales`, [rows * blocks], {
      ...matrix,
      plus: 0,
      form: `q${bits}-scales`,
      type: 'f32',
    })
    const zeros =
      bits === 8
        ? []
        : [
            weight(`${name}.weight_zeros`, [rows * blocks], {
              ...matrix,
              plus: 0,
              form: 'q4-zeros',
              type: 'f32',
            }),
          ]
    const sizes = { K: int(columns), N: int(rows), bits: int(bits), block_size: int(Q4_BLOCK) }
    return node('MatMulNBits', name, [input, packed, scales, ...zeros], {
      domain: MICROSOFT,
      // int8 activations where speed was chosen: their rounding is small beside that of 4-bit weights only.
      attributes: { ...sizes, accuracy_level: int(dtype === 'q4' ? INT8_ACTIVATIONS : 0) },
      ...(output === undefined ? {} : { outputs: [output] }),
    })
  }
  const linear: GraphBuilder['linear'] = (name, input, { matrix, bias }) => {
    const product = multiply(name, input, matrix)
    return bias === null ? product : node('Add', `${name}/Add`, [product, vector(bias)])
  }
  const multiply = (name: string, input: string, matrix: Matrix): string => {
    if (isQuantized(dtype)) {
      return blockLinear(name, input, matrix, { bits: dtype === 'q8' ? 8 : 4 })
    }
    const { rows, columns } = matrix
    const recipe = { ...matrix, plus: 0, form: 'transposed', type: dtype } as const
    const stored = weight(`${name}.weight`, [columns, rows], recipe)
    return node('MatMul', name, [input, dtype === 'f16' ? widened(stored) : stored])
  }
  const rowLinear: GraphBuilder['rowLinear'] = (name, input, matrix, output) => {
    const type = tableDtype(dtype)
    if (type === 'q8') return blockLinear(name, input, matrix, { bits: 8, output })
    const { source, rows, columns } = matrix
    const recipe = { ...matrix, plus: 0, form: 'rows', type } as const
    const stored = weight(source, [rows, columns], recipe)
    return node('FusedMatMul', name, [input, type === 'f16' ? widened(stored) : stored], {
      domain: MICROSOFT,
      attributes: { transB: int(1) },
      outputs: [output],
    })
  }

  return {
    dtype,
    nodes,
    initializers,
    recipes,
    node,
    constant,
    weight,
    vector,
    linear,
    rowLinear,
    norm: (name, input, { kind, weight: scale, bias, epsilon }) => {
      const inputs = [input, vector(scale), ...(bias === null ? [] : [vector(bias)])]
      const attributes = { axis: int(-1), epsilon: float(epsilon), stash_type: int(1) }
      const op = kind === 'rms' ? 'SimplifiedLayerNormalization' : 'LayerNormalization'
      return node(op, name, inputs, { attributes })
    },
    skipNorm: (name, { residual, skip }, { weight: scale, epsilon }) => {
      const sum = `${name}/output_3`
      const normed = node(
        'SkipSimplifiedLayerNormalization',
        name,
        [residual, skip, vector(scale)],
        {
          domain: MICROSOFT,
          attributes: { epsilon: float(epsilon) },
          outputs: [`${name}/output_0`, '', '', sum],
        },
      )
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
